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

// pins are the pages of the host that this process has locked for the devices, by the address of
// the first.
var pins = struct {
	sync.Mutex
	m map[*byte]*pin
}{m: map[*byte]*pin{}}

type pin struct {
	dev   *Device // that registered them, for all
	pages []byte
	count int
}

// Pin locks the pages of a tensor on the host, and returns a tensor of the device over the same
// memory, which the device reaches without a copy. A copy between this tensor and memory of the
// device does not keep the host waiting, as a copy from other memory of the host does. The host
// calls Synchronize before it reads what the device has written there. The caller closes the
// tensor, which keeps t's memory by itself.
//
// t is in shared memory and has a page at least, or the error wraps ErrNotPageable.
func (d *Device) Pin(t *tensor.Tensor) (*tensor.Tensor, error) {
	if t.Device() != nil || !t.IsShared() {
		return nil, fmt.Errorf("%w: a tensor that is not in shared memory", ErrNotPageable)
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

// pageable reports whether these are pages that are shared with nobody.
func pageable(b []byte) bool {
	return len(b) >= os.Getpagesize() && uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(os.Getpagesize()) == 0
}

// lock registers pages, once for all devices, and returns them as memory of this one. end is called
// when that has ended.
func (d *Device) lock(pages []byte, end func() error) (*memory, error) {
	if !pageable(pages) {
		return nil, fmt.Errorf("%w: %d bytes that share a page with others", ErrNotPageable, len(pages))
	}
	p, err := d.register(pages)
	if err != nil {
		return nil, err
	}
	var at cudriver.Ptr
	err = d.do(func(cudriver.Stream) (err error) {
		at, err = d.driver.MemHostGetDevicePointer(p.pages)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, p.unlock())
	}
	m := d.foreign(at, 0, len(p.pages), func() error { return errors.Join(p.unlock(), end()) })
	m.segment.host = true
	return m, nil
}

// register locks pages, or counts once more that they are.
func (d *Device) register(pages []byte) (*pin, error) {
	pins.Lock()
	defer pins.Unlock()
	first := unsafe.SliceData(pages)
	p := pins.m[first]
	if p == nil {
		p = &pin{dev: d, pages: pages}
		err := d.doSettled(func() error {
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

// unlock ends what register began.
func (p *pin) unlock() error {
	pins.Lock()
	defer pins.Unlock()
	first := unsafe.SliceData(p.pages)
	if p.count--; p.count > 0 || pins.m[first] != p { // or Close has unlocked all
		return nil
	}
	delete(pins.m, first)
	return p.unregister()
}

func (p *pin) unregister() error {
	return p.dev.doSettled(func() error { return p.dev.driver.MemHostUnregister(p.pages) })
}

// unlockAll ends all of them, before there are no contexts.
func unlockAll() (err error) {
	pins.Lock()
	defer pins.Unlock()
	for _, p := range pins.m {
		err = errors.Join(err, p.unregister())
	}
	clear(pins.m)
	return err
}

// lockPages registers the pages of a tensor's block until that is given back: the domain takes
// pages away from under a free one, and the device would go on with what was there. Less than a
// page is shared with other blocks, and stays as it is: the driver copies so little by way of pages
// of its own.
func lockPages(b []byte) (unlock func() error, err error) {
	d, err := Current()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tensor.ErrDevice, err)
	}
	if !pageable(b) {
		return nil, nil
	}
	p, err := d.register(b)
	if err != nil {
		return nil, err
	}
	return p.unlock, nil
}
