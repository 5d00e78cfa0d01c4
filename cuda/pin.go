package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
)

// pins holds the host pages that this process has pinned, by the address of the first page.
var pins = struct {
	sync.Mutex
	m map[*byte]*pin
}{m: map[*byte]*pin{}}

type pin struct {
	dev   *Device // the device that registered the pages; the registration is valid for all devices
	pages []byte
	count int
}

// Pin pins the pages of a host tensor in shared memory, and returns a device tensor over the same
// memory, which the device accesses directly. A copy between that tensor and device memory is
// asynchronous, unlike a copy of pageable host memory. The caller must call [Device.Synchronize]
// before the host reads data that the device has written, and must close the returned tensor. t may
// be closed before.
//
// t must be in shared memory and must have at least one page, or the error wraps [ErrNotPageable].
func (d *Device) Pin(t *tensor.Tensor) (*tensor.Tensor, error) {
	if t.Device() != nil || !t.IsShared() {
		return nil, fmt.Errorf("%w: tensor is not in shared memory", ErrNotPageable)
	}
	hold, err := t.ToDevice(nil)
	if err != nil {
		return nil, err
	}
	m, err := d.lock(hold.Storage().Bytes(), hold.Close)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pin %d bytes for %v: %w", t.Nbytes(), d, err), hold.Close())
	}
	return tensors.Over(m, t.DType(), t.Shape(), t.Strides(), t.Offset())
}

// isPageable reports whether b begins at a page boundary and has at least one page.
func isPageable(b []byte) bool {
	return len(b) >= os.Getpagesize() && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(os.Getpagesize()) == 0
}

// lock pins pages for all devices and returns them as memory of d. When that memory ends, end
// is called; if lock returns an error, it has not called end. The error wraps [ErrNotPageable]
// if the pages do not begin at a page boundary or are less than a page.
func (d *Device) lock(pages []byte, end func() error) (*memory, error) {
	if !isPageable(pages) {
		return nil, fmt.Errorf("%w: %d bytes share a page with other memory", ErrNotPageable, len(pages))
	}
	p, err := d.register(pages)
	if err != nil {
		return nil, err
	}
	var at cudriver.Ptr
	err = d.withContext(func(cudriver.Stream) (err error) {
		at, err = d.driver.MemHostGetDevicePointer(p.pages)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.unlock())
	}
	m := d.foreignMemory(at, 0, len(p.pages), func() error { return errors.Join(p.unlock(), end()) })
	m.segment.host = true
	return m, nil
}

// register pins pages, or increments the reference count if they are pinned already. The caller
// must call [pin.unlock] later.
func (d *Device) register(pages []byte) (*pin, error) {
	pins.Lock()
	defer pins.Unlock()
	first := unsafe.SliceData(pages)
	p := pins.m[first]
	if p == nil {
		p = &pin{dev: d, pages: pages}
		err := d.doAfterJudging(func() error {
			return d.driver.MemHostRegister(pages, cudriver.HostPortable|cudriver.HostDeviceMap)
		})
		if err != nil {
			return nil, err
		}
		pins.m[first] = p
	}
	p.count++
	return p, nil
}

// unlock decrements the reference count, and unpins the pages if it drops to 0. It may wait for
// the device.
func (p *pin) unlock() error {
	pins.Lock()
	defer pins.Unlock()
	first := unsafe.SliceData(p.pages)
	if p.count--; p.count > 0 || pins.m[first] != p { // Close has unpinned everything
		return nil
	}
	delete(pins.m, first)
	return p.unregister()
}

func (p *pin) unregister() error {
	return p.dev.doAfterJudging(func() error { return p.dev.driver.MemHostUnregister(p.pages) })
}

// unlockAll unpins all pages. It must be called before the contexts are released.
func unlockAll() (err error) {
	pins.Lock()
	defer pins.Unlock()
	for _, p := range pins.m {
		err = errors.Join(err, p.unregister())
	}
	clear(pins.m)
	return err
}

// lockPages pins the pages of a tensor's block, on the current device, until unlock is called.
// The caller must unlock them before it frees the block, because the domain releases the pages
// of free blocks and the device would keep using the old ones. A block smaller than a page
// shares it with other blocks and is not pinned, so unlock is nil; the driver copies such small
// amounts through its own staging buffer. The error wraps [tensor.ErrDevice] if there is no
// device.
func lockPages(b []byte) (unlock func() error, err error) {
	d, err := Current()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tensor.ErrDevice, err)
	}
	if !isPageable(b) {
		return nil, nil
	}
	p, err := d.register(b)
	if err != nil {
		return nil, err
	}
	return p.unlock, nil
}
