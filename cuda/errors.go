package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

var (
	// ErrUnavailable is wrapped where there is no CUDA: no driver, or no device that this process
	// may see. The error says which.
	ErrUnavailable = errors.New("cuda: not available")
	// ErrDevice is wrapped where a text names no device, or one that this process does not see.
	ErrDevice = errors.New("cuda: no such device")
	// ErrKeeper is wrapped where the process that made the domain does not answer for the memory of
	// devices: it has ended.
	ErrKeeper = shm.ErrKeeper
	// ErrUnfinished is wrapped where the process that sent memory ended before its device had
	// written it. What was computed from it is wrong.
	ErrUnfinished = errors.New("cuda: the sender of this memory ended before its device had written it")
	// ErrNotLegacy is wrapped where other programs are to open memory that is not a LegacyDevice's.
	// ErrForeign is wrapped where memory of a LegacyDevice is to be sent to a process of the
	// domain; a Clone of its tensor can be sent.
	ErrNotLegacy = errors.New("cuda: other programs cannot open this memory")
	ErrForeign   = errors.New("cuda: this memory is not the domain's, so its allocator would have to stay alive")
	// ErrNotPageable is wrapped where memory was to be pinned that is not whole pages of shared
	// memory.
	ErrNotPageable = errors.New("cuda: cannot be pinned")
	// ErrArray is wrapped where another library's description of an array makes no sense, or
	// describes what a device cannot have.
	ErrArray = errors.New("cuda: not an array of a device that can be used")
	// ErrRange is wrapped where memory arrives that is not within its segment.
	ErrRange = errors.New("cuda: memory outside of its segment")
)

// These are the results of the driver by which programs decide, with CUDA's own names. The error of
// a call of the driver wraps its result: errors.Is(err, cuda.ErrorOutOfMemory). After
// ErrorIllegalAddress this process cannot use the device any more; another process can.
var (
	ErrorOutOfMemory       error = cudriver.ErrorOutOfMemory
	ErrorDeviceUnavailable error = cudriver.ErrorDeviceUnavailable // another process has it for itself
	ErrorInvalidContext    error = cudriver.ErrorInvalidContext
	ErrorIllegalAddress    error = cudriver.ErrorIllegalAddress
	ErrorNotPermitted      error = cudriver.ErrorNotPermitted
	ErrorNotSupported      error = cudriver.ErrorNotSupported
)

func init() {
	wire.RegisterError("cuda.ErrUnavailable", ErrUnavailable)
	wire.RegisterError("cuda.ErrDevice", ErrDevice)
	wire.RegisterError("cuda.ErrRange", ErrRange)
	wire.RegisterError("cuda.ErrUnfinished", ErrUnfinished)
	wire.RegisterError("cuda.ErrNotLegacy", ErrNotLegacy)
	wire.RegisterError("cuda.ErrForeign", ErrForeign)
	wire.RegisterError("cuda.ErrNotPageable", ErrNotPageable)
	wire.RegisterError("cuda.ErrArray", ErrArray)
}
