package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

var (
	// ErrUnavailable is wrapped by errors if CUDA is not available because there is no driver or no
	// visible device. The error message gives the reason.
	ErrUnavailable = errors.New("cuda: not available")
	// ErrDevice is wrapped by errors if a device name is invalid, if it names a device that is not
	// visible to this process, or if a tensor is on the wrong device.
	ErrDevice = errors.New("cuda: no such device")
	// ErrKeeper is wrapped by errors if the process that created the domain, and keeps the
	// descriptors of device memory, has ended.
	ErrKeeper = arena.ErrKeeper
	// ErrUnfinished is wrapped by errors if the process that sent memory ended before its device
	// had written it. Results computed from that memory are invalid and must be discarded.
	ErrUnfinished = errors.New("cuda: the sender of this memory ended before its device had written it")
	// ErrNotLegacy is wrapped by errors if memory is exported to other programs but was not
	// allocated on a [LegacyDevice]. ErrForeign is wrapped by errors if memory that is not in the
	// domain, such as the memory of a LegacyDevice, is sent to another process of the domain; send
	// a Clone of the tensor instead.
	ErrNotLegacy = errors.New("cuda: other programs cannot open this memory")
	ErrForeign   = errors.New("cuda: memory does not belong to the domain, so its allocator would have to stay alive")
	// ErrNotPageable is wrapped by errors if memory cannot be pinned because it does not consist of
	// whole pages of shared memory.
	ErrNotPageable = errors.New("cuda: memory cannot be pinned")
	// ErrArray is wrapped by errors if another library's description of an array is invalid or not
	// supported.
	ErrArray = errors.New("cuda: invalid or unsupported array")
	// ErrRange is wrapped by errors if received memory is not within its segment or allocation, or
	// if another received value is out of range.
	ErrRange = errors.New("cuda: memory outside of its segment")
)

// The following errors are results of the CUDA driver that programs may want to handle, under
// CUDA's names. The error of a failed driver call wraps its result, so it can be tested with
// errors.Is(err, cuda.ErrorOutOfMemory). After ErrorIllegalAddress this process cannot use the
// device any more; other processes can.
var (
	ErrorOutOfMemory error = cudriver.ErrorOutOfMemory
	// another process uses the device exclusively
	ErrorDeviceUnavailable error = cudriver.ErrorDeviceUnavailable
	ErrorInvalidContext    error = cudriver.ErrorInvalidContext
	ErrorIllegalAddress    error = cudriver.ErrorIllegalAddress
	ErrorNotPermitted      error = cudriver.ErrorNotPermitted
	ErrorNotSupported      error = cudriver.ErrorNotSupported
)

func init() {
	codec.RegisterError("cuda.ErrUnavailable", ErrUnavailable)
	codec.RegisterError("cuda.ErrDevice", ErrDevice)
	codec.RegisterError("cuda.ErrRange", ErrRange)
	codec.RegisterError("cuda.ErrUnfinished", ErrUnfinished)
	codec.RegisterError("cuda.ErrNotLegacy", ErrNotLegacy)
	codec.RegisterError("cuda.ErrForeign", ErrForeign)
	codec.RegisterError("cuda.ErrNotPageable", ErrNotPageable)
	codec.RegisterError("cuda.ErrArray", ErrArray)
}
