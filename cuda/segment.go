package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [The keeper of segments] Device memory lives as long as any process has a file descriptor,
// an import or a mapping of it. The domain's keeper holds a descriptor of each segment, so that
// processes can still import the segment after its creator has ended. The keeper needs no GPU,
// because it only holds files. A block of the domain identifies the segment. Every tensor in the
// segment, in a process or in a message, holds a reference to that block, and so does the process
// that allocates in it.

// A segment is a large piece of device memory that is mapped in this process. Only its creator
// allocates in it; every process that uses it maps all of it once. The lock of segments guards
// used, refs, fates and guests.
type segment struct {
	dev   *Device
	d     *arena.Domain
	block arena.Handle // see Note [The keeper of segments]
	base  cudriver.Ptr
	size  int

	// created by this process, which holds a reference to block while the segment is in the table
	mine bool
	used []extent // if mine: allocated extents, sorted by offset
	refs int      // number of allocations in this process

	fates  map[arena.Handle]*fate // fates of those allocations
	guests map[*Device]bool       // other devices with access

	// end is set for memory outside of the domain, which otherwise has only dev, base, size and
	// host.
	end  func() error
	host bool // pinned host memory, which all devices access at this address
}

// An extent is the range of an allocation within a segment. The range is free when the allocation's
// block is stale, so a reaper that drops the references of dead processes frees their device memory
// too.
type extent struct {
	off, size int
	block     arena.Handle
}

// segments is the table of segments that this process has mapped. Its lock must not be held during
// a request to the keeper, which may send a notification first, or while the driver maps or unmaps
// memory, which may wait for the device.
var segments = struct {
	sync.Mutex
	m      map[arena.Handle]*segment
	domain *arena.Domain // the last domain that had segments, or nil
}{m: map[arena.Handle]*segment{}}

// segmentSize is the default size of a segment in bytes. A segment is larger if an allocation needs
// more, and smaller if the device has less than 8 times as much memory.
const segmentSize = 64 << 20

// followed is the domain whose keeper notifies this process of unused segments. Its lock is held
// until the keeper has acknowledged the subscription.
var followed struct {
	sync.Mutex
	domain *arena.Domain
}

// subscribeKeeper subscribes to the notifications of the domain's keeper, which call
// [dropSegment] for unused segments. It does nothing if this process is subscribed already. It
// takes the lock of segments.
func subscribeKeeper(d *arena.Domain) error {
	followed.Lock()
	defer followed.Unlock()
	if followed.domain != d {
		if err := d.WatchKept(dropSegment); err != nil {
			return err
		}
		followed.domain = d
	}
	segments.Lock()
	segments.domain = d
	segments.Unlock()
	return nil
}

// sweepSegments makes the keeper look for unused segments. It is a no-op if this process has
// had none. The caller must not hold the lock of segments.
func sweepSegments() error {
	segments.Lock()
	d := segments.domain
	segments.Unlock()
	if d == nil {
		return nil
	}
	return d.Sweep()
}

// noteOf encodes the size and device of a segment for the keeper. [importSegment] decodes it.
func noteOf(size int, uuid [16]byte) (n arena.Note) {
	binary.LittleEndian.PutUint64(n[:], uint64(size))
	copy(n[8:], uuid[:])
	return n
}

// dropSegment unmaps a segment that is not used any more. It is a no-op if this process still
// uses or owns the segment. The domain calls it, in a goroutine of its own, when the keeper
// reports the segment as unused.
func dropSegment(block arena.Handle) {
	segments.Lock()
	s := segments.m[block]
	if s != nil && (s.refs > 0 || s.mine) {
		s = nil
	}
	if s != nil {
		delete(segments.m, block)
	}
	segments.Unlock()
	if s != nil {
		s.unmap()
	}
}

// unmap unmaps a segment. The caller must have removed it from the table, and must wait until the
// device has finished all work that uses it.
func (s *segment) unmap() error { return s.dev.doAfterJudging(s.unmapAndRelease) }

func (s *segment) unmapAndRelease() error {
	return errors.Join(s.dev.driver.MemUnmap(s.base, uint64(s.size)),
		s.dev.driver.MemAddressFree(s.base, uint64(s.size)))
}

// newSegment creates a segment with at least n bytes, passes its descriptor to the keeper and
// adds it to the table. The error wraps [ErrorOutOfMemory] if the device has too little free
// memory. The caller must not hold the lock of segments.
func newSegment(dev *Device, d *arena.Domain, n int) (*segment, error) {
	if err := subscribeKeeper(d); err != nil {
		return nil, err
	}
	r, err := dev.readyState()
	if err != nil {
		return nil, err
	}
	need := roundUp(n, r.granularity)
	size := max(need, roundUp(min(segmentSize, r.total/8), r.granularity))
	h, err := dev.create(size)
	if errors.Is(err, ErrorOutOfMemory) && size > need {
		size = need
		h, err = dev.create(size)
	}
	if err != nil {
		return nil, err
	}
	s := &segment{dev: dev, d: d, size: size, mine: true}
	release := func() error { return dev.withContext(func(cudriver.Stream) error { return dev.driver.MemRelease(h) }) }
	if s.block, err = d.Alloc(0); err != nil {
		return nil, errors.Join(err, release())
	}
	f, err := dev.exportMemory(h)
	if err == nil {
		err = errors.Join(d.Keep(s.block, noteOf(size, dev.uuid), f), f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, release(), d.Release(s.block))
	}
	if err := s.mapIn(h); err != nil {
		return nil, errors.Join(err, d.Release(s.block), d.Sweep())
	}
	segments.Lock()
	defer segments.Unlock()
	segments.m[s.block] = s
	return s, nil
}

func roundUp(n, unit int) int { return (max(n, 1) + unit - 1) / unit * unit }

func (d *Device) create(n int) (h cudriver.MemHandle, err error) {
	err = d.withContext(func(cudriver.Stream) error {
		h, err = d.driver.MemCreate(uint64(n), cudriver.Pinned(d.id, true))
		return err
	})
	return h, err
}

// exportMemory exports device memory as a file. The caller must close the file.
func (d *Device) exportMemory(h cudriver.MemHandle) (f *os.File, err error) {
	err = d.withContext(func(cudriver.Stream) error {
		f, err = sys.FileOf("segment", func() (int, error) { return d.driver.MemExport(h) })
		return err
	})
	return f, err
}

// mapIn maps the memory of h and releases h, even if it returns an error; the mapping keeps the
// memory alive.
func (s *segment) mapIn(h cudriver.MemHandle) error {
	driver := s.dev.driver
	return s.dev.doAfterJudging(func() (err error) {
		defer func() { err = errors.Join(err, driver.MemRelease(h)) }()
		if err = s.dev.finishBeforeLeave(s.d); err != nil {
			return err
		}
		if s.base, err = driver.MemAddressReserve(uint64(s.size), 0); err != nil {
			return err
		}
		if err = driver.MemMap(s.base, uint64(s.size), h); err != nil {
			return errors.Join(err, driver.MemAddressFree(s.base, uint64(s.size)))
		}
		if err = driver.MemSetAccess(s.base, uint64(s.size),
			[]cudriver.AccessDesc{cudriver.Access(s.dev.id, cudriver.AccessReadWrite)}); err != nil {
			return errors.Join(err, s.unmapAndRelease())
		}
		return nil
	})
}

// importSegment returns the segment of a block and increments its reference count. It maps the
// segment if necessary. The caller must hold a reference to the block, and must not hold the
// lock of segments. The error wraps [ErrDevice] if this process does not see the segment's
// device.
func importSegment(d *arena.Domain, block arena.Handle) (*segment, error) {
	if s := enterSegment(block, nil); s != nil {
		return s, nil
	}
	if err := subscribeKeeper(d); err != nil {
		return nil, err
	}
	file, note, err := d.Fetch(block)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dev, err := deviceOf([16]byte(note[8:]))
	if err != nil {
		return nil, err
	}
	s := &segment{dev: dev, d: d, block: block, size: int(binary.LittleEndian.Uint64(note[:]))}
	var h cudriver.MemHandle
	err = dev.withContext(func(cudriver.Stream) error {
		return withDescriptor(file, func(fd int) (err error) {
			h, err = dev.driver.MemImport(fd)
			return err
		})
	})
	if err == nil {
		err = s.mapIn(h)
	}
	if err != nil {
		return nil, fmt.Errorf("import segment of %d bytes on %v: %w", s.size, dev, err)
	}
	return enterSegment(block, s), nil
}

// withDescriptor calls f with the file's descriptor number, which is valid only during the call.
func withDescriptor(file *os.File, f func(fd int) error) (err error) {
	raw, failed := file.SyscallConn()
	if failed != nil {
		return failed
	}
	if failed := raw.Control(func(fd uintptr) { err = f(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// enterSegment increments the reference count of a block's segment and returns it. If the
// segment is not in the table, it adds fresh, unless fresh is nil. It returns nil if there is
// no segment. It unmaps fresh if the table already has the segment.
func enterSegment(block arena.Handle, fresh *segment) *segment {
	segments.Lock()
	s := segments.m[block]
	if s == nil && fresh != nil {
		segments.m[block], s = fresh, fresh
	}
	if s != nil {
		s.refs++
	}
	segments.Unlock()
	if fresh != nil && fresh != s { // two goroutines imported it concurrently
		fresh.unmap()
	}
	return s
}

// deviceOf returns the device with the given UUID. The error wraps [ErrDevice] if this process does
// not see it.
func deviceOf(uuid [16]byte) (*Device, error) {
	all, err := open()
	if err != nil {
		return nil, err
	}
	for _, d := range all.devices {
		if d.uuid == uuid {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%w: the device with UUID %x is not visible to this process", ErrDevice, uuid)
}
