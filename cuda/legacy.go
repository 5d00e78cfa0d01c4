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

// Note [Legacy memory] PyTorch, CuPy and Numba know no other memory than cuMemAlloc's, which
// another process opens by a handle of 64 bytes. The driver counts no openers: the allocating
// process must live and keep the memory until all others have closed it. CUDA does not say what
// becomes of those that have not closed it. So such memory is for other programs alone, and does
// not travel between processes of this module.

// legacyUnit is what the driver cuts smaller allocations from: a process that opens one of those
// sees its neighbours.
const legacyUnit = 2 << 20

// A LegacyDevice allocates memory that processes of PyTorch, CuPy and Numba can open:
// x.ToDevice(cuda.LegacyDevice{d}). An allocation is slow, and takes 2 MiB at least. A tensor there
// is on the *Device, which its method Device returns.
type LegacyDevice struct{ *Device }

// A legacyEngine allocates as a LegacyDevice does.
type legacyEngine struct{ engine }

// Alloc returns n bytes, which hold anything.
func (d legacyEngine) Alloc(n int) (device.Memory, error) {
	var p cudriver.Ptr
	size := roundUp(n, legacyUnit)
	err := d.doSettled(func() (err error) {
		p, err = d.driver.MemAlloc(uint64(size))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes on %v for other programs: %w", n, d, err)
	}
	free := func() error { return d.doSettled(func() error { return d.driver.MemFree(p) }) }
	return d.foreign(p, 0, n, free), nil
}

// foreign returns memory at an address that the domain does not know. end is called when nobody
// uses the memory any more and the device has finished.
func (d *Device) foreign(base cudriver.Ptr, off, n int, end func() error) *memory {
	return &memory{segment: &segment{dev: d, base: base, size: off + n, end: end}, off: off, size: n, fate: new(fate)}
}

// An address names memory that the domain does not know, so that it is known when it arrives again.
type address struct {
	dev  *Device
	at   uint64
	size int
}

// HandleOf returns the CUipcMemHandle by which another process opens the memory of a tensor, and
// the place of the tensor's first element in that memory, in bytes. It does not wait for the
// device. The error wraps ErrDevice for a tensor on the host, and ErrNotLegacy for one that is not
// on a LegacyDevice.
func HandleOf(t *tensor.Tensor) (h [64]byte, off int, err error) {
	m, err := memoryOf(t)
	if err != nil {
		return h, 0, err
	}
	h, off, err = m.handle()
	return h, off + t.Offset()*t.DType().Size(), err
}

// memoryOf returns the memory of a tensor that is on one of our devices.
func memoryOf(t *tensor.Tensor) (*memory, error) {
	if m, ok := tensors.Memory(t).(*memory); ok {
		return m, nil
	}
	return nil, fmt.Errorf("%w: the tensor is on %v", ErrDevice, tensor.Place{Device: t.Device()})
}

// handle returns the handle of the memory that m is in, and where m begins there.
func (m *memory) handle() (h [64]byte, off int, err error) {
	if m.segment.end == nil {
		return h, 0, fmt.Errorf("%w: copy it to a cuda.LegacyDevice", ErrNotLegacy)
	}
	var base cudriver.Ptr
	err = m.dev.do(func(cudriver.Stream) error {
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

// An opening is memory of another process, which is opened once however often its handle arrives.
type opening struct {
	dev   *Device
	base  cudriver.Ptr
	size  int
	count int
}

var openings = struct {
	sync.Mutex
	m map[opened]*opening
}{m: map[opened]*opening{}}

// opened names memory that a device has open. The memory may be another device's, where the other
// program numbers the devices otherwise.
type opened struct {
	dev    *Device
	handle [64]byte
}

// Open returns a tensor of n bytes (Uint8) at off of memory that another process has allocated, by
// the memory's CUipcMemHandle. The tensor's Storage has views of other dtypes. Unless event is nil,
// Open waits for the event of that CUipcEventHandle, such as PyTorch sends with a tensor. The wait
// ends with ctx, whose cause is the error then. It ends after a minute as well, with an error that
// wraps ErrUnfinished, since nobody knows whether the event's process lives.
//
// The other process must live and keep the memory until the tensor and its views are closed: CUDA
// does not say what happens otherwise. The error wraps ErrorInvalidContext in the process that
// allocated the memory, and ErrRange for bytes beyond the memory and an event that has not 64
// bytes. The caller closes the tensor.
func (d *Device) Open(ctx context.Context, handle [64]byte, off, n int, event []byte) (*tensor.Tensor, error) {
	m, err := d.openBehind(ctx, handle, off, n, event, 0)
	if err != nil {
		return nil, err
	}
	return m.flat()
}

// openBehind opens memory, and waits for an event of its process if there is one.
func (d *Device) openBehind(ctx context.Context, h [64]byte, off, n int, event []byte, sender int) (*memory, error) {
	m, err := d.openMemory(h, off, n)
	if err != nil || event == nil {
		return m, err
	}
	if len(event) != len(h) {
		err = fmt.Errorf("%w: an event's handle of %d bytes", ErrRange, len(event))
	} else {
		err = d.waitHandle(ctx, cudriver.IPCHandle(event), sender)
	}
	if err != nil {
		return nil, errors.Join(err, m.End())
	}
	return m, nil
}

// flat returns all of the memory as bytes.
func (m *memory) flat() (*tensor.Tensor, error) {
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
	return d.foreign(o.base, off, n, func() error { return o.close(h) }), nil
}

func (d *Device) open(h [64]byte) (*opening, error) {
	openings.Lock()
	defer openings.Unlock()
	if o := openings.m[opened{d, h}]; o != nil {
		o.count++
		return o, nil
	}
	o := &opening{dev: d, count: 1}
	err := d.doSettled(func() (err error) {
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
	openings.m[opened{d, h}] = o
	return o, nil
}

func (o *opening) close(h [64]byte) error {
	openings.Lock()
	defer openings.Unlock()
	if o.count--; o.count > 0 {
		return nil
	}
	delete(openings.m, opened{o.dev, h})
	return o.dev.doSettled(func() error { return o.dev.driver.IPCCloseMemHandle(o.base) })
}
