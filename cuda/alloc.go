package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/device"
)

// alignment is the alignment in bytes of an allocation within a segment. cuMemAlloc aligns its
// allocations likewise.
const alignment = 512

// Alloc allocates n bytes of device memory. The memory is not initialised. The caller must call
// its End. The error wraps [ErrorOutOfMemory] if the device has too little free memory,
// [ErrKeeper] if the domain's keeper has ended, or an error of [arena.Domain], because each
// allocation has a block in the domain.
func (d engine) Alloc(n int) (device.Memory, error) {
	domain, err := arena.Default()
	if err != nil {
		return nil, err
	}
	m, err := d.alloc(domain, n)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes on %v: %w", n, d, err)
	}
	return m, nil
}

func (d *Device) alloc(domain *arena.Domain, n int) (*memory, error) {
	block, err := domain.Alloc(0)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		if m, err := d.allocateShared(domain, n, block); m != nil || err != nil {
			return m, err
		}
		_, err := newSegment(d, domain, n)
		if errors.Is(err, ErrorOutOfMemory) && try == 0 {
			err = emptyCaches()
		}
		if err != nil {
			return nil, errors.Join(err, domain.Release(block))
		}
	}
}

// allocateShared allocates n bytes in a segment of this process. The returned memory owns the
// block. allocateShared returns nil and no error if no segment has enough free space; the block
// then stays the caller's. If it returns an error, it has released the block.
func (d *Device) allocateShared(domain *arena.Domain, n int, block arena.Handle) (*memory, error) {
	segments.Lock()
	defer segments.Unlock()
	for _, s := range segments.m {
		if !s.mine || s.dev != d || s.d != domain {
			continue
		}
		off, ok := s.reserveBytes(roundUp(n, alignment), block)
		if !ok {
			continue
		}
		if err := domain.Retain(s.block); err != nil {
			return nil, errors.Join(err, domain.Release(block))
		}
		s.refs++
		return s.memory(block, off, n), nil
	}
	return nil, nil
}

// reserveBytes reserves n contiguous bytes of the segment for block, and returns their offset.
// n must be a multiple of alignment. If there is no free range, it first removes the extents of
// allocations that were freed, and tries once more; ok is false if there is still none. The
// caller must hold the lock of segments.
func (s *segment) reserveBytes(n int, block arena.Handle) (off int, ok bool) {
	if off, ok = s.findFreeRange(n, block); !ok && s.collectFreed() {
		off, ok = s.findFreeRange(n, block)
	}
	return off, ok
}

func (s *segment) findFreeRange(n int, block arena.Handle) (off int, ok bool) {
	for i, e := range s.used {
		if e.off-off >= n {
			s.used = slices.Insert(s.used, i, extent{off, n, block})
			return off, true
		}
		off = e.off + e.size
	}
	if s.size-off < n {
		return 0, false
	}
	s.used = append(s.used, extent{off, n, block})
	return off, true
}

// collectFreed removes the extents of freed allocations, and reports whether it removed any. The
// caller must hold the lock of segments.
func (s *segment) collectFreed() bool {
	before := len(s.used)
	s.used = slices.DeleteFunc(s.used, func(e extent) bool { return s.d.Stale(e.block) })
	return len(s.used) < before
}

// emptyCaches returns cached device memory to the driver: empty segments, and the clocks of all
// devices in use. It waits until these devices have finished their queued work. The caller must
// hold neither the lock of segments nor a lock of a device's events.
func emptyCaches() error {
	var err error
	for _, d := range knownDevices() {
		if d.ready.Load() != nil {
			err = errors.Join(err, d.Synchronize(), d.dropClock(nil),
				d.forgetClocks(func(*foreignClock) bool { return true }))
		}
	}
	return errors.Join(err, emptyCache(), sweepSegments())
}

// emptyCache unmaps this process's empty segments. It synchronizes each device first, because
// queued work may still use memory that was already freed. The caller must not hold the lock of
// segments.
func emptyCache() (err error) {
	var empty []*segment
	segments.Lock()
	for block, s := range segments.m {
		if s.collectFreed(); s.mine && len(s.used) == 0 {
			empty = append(empty, s)
			delete(segments.m, block)
		}
	}
	segments.Unlock()
	for _, s := range empty {
		err = errors.Join(err, s.dev.Synchronize(), s.unmap(), s.d.Release(s.block))
	}
	return err
}
