package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Legacy memory] PyTorch, CuPy and Numba share only memory from cuMemAlloc, which another
// process opens by a handle of 64 bytes (CUipcMemHandle). The driver does not count the openers:
// the allocating process must stay alive and must not free the memory until all others have closed
// it. CUDA leaves the behaviour undefined otherwise. Therefore this package uses such memory only
// to exchange tensors with other programs, and never sends it between processes of the domain.

// legacyUnit is the unit of memory that the driver cuts smaller allocations from. A process that
// opens a handle can access the whole unit, so an allocation must not share it with others.
const legacyUnit = 2 << 20

// A LegacyDevice allocates memory that PyTorch, CuPy and Numba processes can open, as in
// x.ToDevice(cuda.LegacyDevice{d}). Each allocation is slow and takes at least 2 MiB. The Device
// method of the resulting tensor returns the underlying *Device.
type LegacyDevice struct{ *Device }

// legacyEngine is the engine of a [LegacyDevice]. Only its allocation differs.
type legacyEngine struct{ engine }

// Alloc allocates n bytes with cuMemAlloc. The memory is not initialised. The caller must call
// its End. The error wraps [ErrorOutOfMemory] if the device has too little free memory.
func (d legacyEngine) Alloc(n int) (device.Memory, error) {
	var p cudriver.Ptr
	size := roundUp(n, legacyUnit)
	err := d.doAfterJudging(func() (err error) {
		p, err = d.driver.MemAlloc(uint64(size))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes on %v for other programs: %w", n, d, err)
	}
	free := func() error { return d.doAfterJudging(func() error { return d.driver.MemFree(p) }) }
	return d.foreignMemory(p, 0, n, free), nil
}

// foreignMemory returns memory of n bytes at offset off of the device address base, which does
// not belong to the domain. When the memory is ended and the device has finished with it, end
// is called.
func (d *Device) foreignMemory(base cudriver.Ptr, off, n int, end func() error) *memory {
	return &memory{segment: &segment{dev: d, base: base, size: off + n, end: end}, off: off, size: n, fate: new(fate)}
}

// An address identifies memory that does not belong to the domain, so that a second import of it is
// recognised.
type address struct {
	dev  *Device
	at   uint64
	size int
}

// HandleOf returns the CUipcMemHandle that lets another process open the memory of a tensor, and
// the byte offset of the tensor's first element in that memory. It does not wait for the device;
// the caller must synchronize before the other process reads the memory. The error wraps
// [ErrDevice] if the tensor is on the host, and [ErrNotLegacy] if it is not on a [LegacyDevice].
func HandleOf(t *tensor.Tensor) (h [64]byte, off int, err error) {
	m, err := memoryOf(t)
	if err != nil {
		return h, 0, err
	}
	h, off, err = m.ipcHandle()
	return h, off + t.Offset()*t.DType().Size(), err
}

// memoryOf returns the memory of a tensor on a device of this package. It takes no reference:
// the memory is valid while the tensor is open. The error wraps [ErrDevice] for any other
// tensor.
func memoryOf(t *tensor.Tensor) (*memory, error) {
	if m, ok := tensors.Memory(t).(*memory); ok {
		return m, nil
	}
	return nil, fmt.Errorf("%w: the tensor is on %v", ErrDevice, tensor.Place{Device: t.Device()})
}

// ipcHandle returns the IPC handle of the driver allocation that contains m, and the offset of
// m in it in bytes. The error wraps [ErrNotLegacy] if the memory belongs to the domain.
func (m *memory) ipcHandle() (h [64]byte, off int, err error) {
	if m.segment.end == nil {
		return h, 0, fmt.Errorf("%w: copy it to a cuda.LegacyDevice", ErrNotLegacy)
	}
	var base cudriver.Ptr
	err = m.dev.withContext(func(cudriver.Stream) error {
		var err error
		if base, _, err = m.dev.driver.MemGetAddressRange(m.base); err == nil {
			var got cudriver.IPCHandle
			got, err = m.dev.driver.IPCGetMemHandle(base)
			h = got
		}
		return err
	})
	return h, int(m.base-base) + m.off, err
}

// An opening is an opened IPC memory handle with its reference count. A handle is opened only once,
// however often it arrives.
type opening struct {
	dev   *Device
	base  cudriver.Ptr
	size  int
	count int
}

var openings = struct {
	sync.Mutex
	m map[openingKey]*opening
}{m: map[openingKey]*opening{}}

// openingKey is the key of an opening. It includes the device because the other program may number
// the devices differently, so the memory may belong to another device.
type openingKey struct {
	dev    *Device
	handle [64]byte
}

// Open opens memory allocated by another process and returns a Uint8 tensor over n bytes of it at
// the offset off. handle is the memory's CUipcMemHandle. Use the tensor's Storage for views with
// other dtypes. The caller must close the tensor.
//
// If event is not nil, it must be a CUipcEventHandle, such as PyTorch sends with a tensor, and Open
// waits for that event. If ctx ends first, the error is the context's cause. After one minute Open
// returns an error that wraps [ErrUnfinished], because it cannot find out whether the event's
// process is alive.
//
// The other process must stay alive and must not free the memory until the tensor and its views are
// closed; CUDA leaves the behaviour undefined otherwise. The error wraps [ErrorInvalidContext] if
// this process itself allocated the memory, and [ErrRange] if the bytes are not within the memory
// or the event does not have 64 bytes.
func (d *Device) Open(ctx context.Context, handle [64]byte, off, n int, event []byte) (*tensor.Tensor, error) {
	m, err := d.openBehind(ctx, handle, off, n, event, 0)
	if err != nil {
		return nil, err
	}
	return m.flatTensor()
}

// openBehind opens memory and, if event is not nil, waits for that event of the process sender.
// sender is 0 if the process is not known. The caller must call the memory's End. It returns
// the errors of [Device.Open].
func (d *Device) openBehind(ctx context.Context, h [64]byte, off, n int, event []byte, sender int) (*memory, error) {
	m, err := d.openMemory(h, off, n)
	if err != nil || event == nil {
		return m, err
	}
	if len(event) != len(h) {
		err = fmt.Errorf("%w: event handle has %d bytes", ErrRange, len(event))
	} else {
		err = d.waitIPCEvent(ctx, cudriver.IPCHandle(event), sender)
	}
	if err != nil {
		return nil, errors.Join(err, m.End())
	}
	return m, nil
}

// flatTensor returns a Uint8 tensor over all of the memory. The tensor owns m, which ends with it,
// or immediately if flatTensor returns an error.
func (m *memory) flatTensor() (*tensor.Tensor, error) {
	return tensors.Over(m, tensor.Uint8, []int{m.size}, nil, 0)
}

func (d *Device) openMemory(h [64]byte, off, n int) (*memory, error) {
	o, err := d.open(h)
	if err != nil {
		return nil, fmt.Errorf("open memory of another process on %v: %w", d, err)
	}
	if off < 0 || n < 0 || off > o.size || n > o.size-off {
		return nil, errors.Join(fmt.Errorf("%w: %d bytes at %d of %d", ErrRange, n, off, o.size), o.close(h))
	}
	return d.foreignMemory(o.base, off, n, func() error { return o.close(h) }), nil
}

func (d *Device) open(h [64]byte) (*opening, error) {
	openings.Lock()
	defer openings.Unlock()
	if o := openings.m[openingKey{d, h}]; o != nil {
		o.count++
		return o, nil
	}
	o := &opening{dev: d, count: 1}
	err := d.doAfterJudging(func() (err error) {
		if o.base, err = d.driver.IPCOpenMemHandle(cudriver.IPCHandle(h)); err != nil {
			return err
		}
		_, size, err := d.driver.MemGetAddressRange(o.base)
		if err != nil {
			return errors.Join(err, d.driver.IPCCloseMemHandle(o.base))
		}
		o.size = int(size)
		return nil
	})
	if err != nil {
		return nil, err
	}
	openings.m[openingKey{d, h}] = o
	return o, nil
}

func (o *opening) close(h [64]byte) error {
	openings.Lock()
	defer openings.Unlock()
	if o.count--; o.count > 0 {
		return nil
	}
	delete(openings.m, openingKey{o.dev, h})
	return o.dev.doAfterJudging(func() error { return o.dev.driver.IPCCloseMemHandle(o.base) })
}
