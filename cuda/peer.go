package cuda

import (
	"errors"
	"os"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// copyFrom copies n bytes at the address from of src, memory of another device, to the address
// to of d, after that device has written the memory. It copies directly if the driver supports
// peer access, and otherwise through the host. It waits for the copy, because only the caller
// keeps the source alive.
func (d *Device) copyFrom(to cudriver.Ptr, src *memory, from cudriver.Ptr, n int) error {
	theirs, err := src.dev.readyState()
	if err == nil {
		err = src.dev.Synchronize()
	}
	if err != nil {
		return err
	}
	ours, err := d.readyState()
	if err != nil {
		return err
	}
	near, err := src.segment.allowAccess(d)
	if err != nil {
		return err
	}
	if !near {
		return d.copyThrough(to, src.dev, from, n)
	}
	return d.doAndSync(func(s cudriver.Stream) error {
		return d.driver.MemcpyPeerAsync(to, ours.ctx, from, theirs.ctx, uint64(n), s)
	})
}

// copyBehind copies between this device and pinned host memory, after the device other has finished
// with that memory. It waits for the copy, because only the caller keeps both ends alive.
func (d *Device) copyBehind(other *Device, to, from cudriver.Ptr, n int) error {
	if err := other.Synchronize(); err != nil {
		return err
	}
	return d.doAndSync(func(s cudriver.Stream) error { return d.driver.MemcpyAsync(to, from, uint64(n), s) })
}

// allowAccess gives another device access to the segment, if it does not have it. It returns
// false if that device cannot access memory of the segment's device; the caller must then copy
// by way of the host. Memory outside of segments needs no permission. The caller must not hold
// the lock of segments.
func (s *segment) allowAccess(peer *Device) (bool, error) {
	can, err := s.dev.driver.DeviceCanAccessPeer(peer.id, s.dev.id)
	if err != nil || !can || s.end != nil {
		return can, err
	}
	segments.Lock()
	there := s.guests[peer]
	segments.Unlock()
	if there {
		return true, nil
	}
	// two concurrent calls are harmless: both set the same access
	err = s.dev.doAfterJudging(func() error {
		return s.dev.driver.MemSetAccess(s.base, uint64(s.size), []cudriver.AccessDesc{
			cudriver.Access(s.dev.id, cudriver.AccessReadWrite), cudriver.Access(peer.id, cudriver.AccessReadWrite)})
	})
	if err != nil {
		return false, err
	}
	segments.Lock()
	defer segments.Unlock()
	if s.guests == nil {
		s.guests = map[*Device]bool{}
	}
	s.guests[peer] = true
	return true, nil
}

// stage is the size of the host buffer in [Device.copyThrough].
const stage = 4 << 20

// copyThrough copies n bytes of the device src to d through a host buffer that is pinned for
// both devices, and waits for the copy.
func (d *Device) copyThrough(to cudriver.Ptr, src *Device, from cudriver.Ptr, n int) (err error) {
	pages := wholePages(min(n, stage))
	pinned, err := src.lock(pages, func() error { return nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pinned.End()) }()
	for done := 0; done < n; done += stage {
		part := pages[:min(stage, n-done)]
		err := src.doAndSync(func(s cudriver.Stream) error {
			return src.driver.MemcpyDtoHAsync(part, from+cudriver.Ptr(done), s)
		})
		if err == nil {
			err = d.doAndSync(func(s cudriver.Stream) error {
				return d.driver.MemcpyHtoDAsync(to+cudriver.Ptr(done), part, s)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wholePages returns a page-aligned buffer of at least n bytes that shares no page with other data.
func wholePages(n int) []byte {
	page := os.Getpagesize()
	b := make([]byte, roundUp(n, page)+page)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	return b[skip:][:roundUp(n, page)]
}
