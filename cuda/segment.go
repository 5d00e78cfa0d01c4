package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [The keeper of segments] The memory of a device lives as long as a descriptor, an import or
// a mapping of it lives, in any process. The domain's keeper has a descriptor of each segment, also
// for processes that come when the segment's maker has ended. The keeper needs no GPU, since it
// only holds files. A block of the domain names the segment. Every tensor in the segment holds that
// block, in processes and messages, and so does the process that allocates there.

// A segment is a large piece of a device's memory, mapped in this process. One process allocates in
// it, its maker; all that use it map the whole of it once.
type segment struct {
	dev   *Device
	d     *shm.Domain
	block shm.Handle // see Note [The keeper of segments]
	base  cudriver.Ptr
	size  int

	mine bool     // made here: the segment has a reference of its block as long as it is in the table
	used []extent // of a segment that is mine, in order
	refs int      // allocations of this process

	fates  map[shm.Handle]*fate // of those allocations
	guests map[*Device]bool     // other devices that reach it

	// of memory that is not the domain's, which has no more than these and dev, base and size
	end  func() error
	host bool // pages of the host: every device has them at this address
}

// An extent is the place of an allocation. It is free again when the allocation's block is stale:
// the reaper's work for the dead is all that is needed to have their memory again as well.
type extent struct {
	off, size int
	block     shm.Handle
}

// segments are those that this process has mapped. Its lock is not held while the keeper is asked
// for something, which may have something to say first, nor while the driver maps or unmaps, which
// may wait for the device.
var segments = struct {
	sync.Mutex
	m      map[shm.Handle]*segment
	domain *shm.Domain // the latest in which there were any; nil if there are none
}{m: map[shm.Handle]*segment{}}

// segmentSize is that of a segment unless an allocation needs more, or the device has less than 8
// times as much.
const segmentSize = 64 << 20

// followed is the domain whose keeper tells us what nobody uses any more. Its lock is held until
// the keeper knows that it is to tell us.
var followed struct {
	sync.Mutex
	domain *shm.Domain
}

// follow has the domain's keeper tell us which segments nobody uses any more.
func follow(d *shm.Domain) error {
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

// sweep has the keeper look for segments that nobody uses any more, if there have been any.
func sweep() error {
	segments.Lock()
	d := segments.domain
	segments.Unlock()
	if d == nil {
		return nil
	}
	return d.Sweep()
}

// noteOf is what the keeper is told of a segment.
func noteOf(size int, uuid [16]byte) (n shm.Note) {
	binary.LittleEndian.PutUint64(n[:], uint64(size))
	copy(n[8:], uuid[:])
	return n
}

// dropSegment unmaps a segment that nobody uses any more.
func dropSegment(block shm.Handle) {
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

// unmap ends a segment that is not in the table any more. The device has done all that this process
// wanted of it.
func (s *segment) unmap() error { return s.dev.doSettled(s.leave) }

func (s *segment) leave() error {
	return errors.Join(s.dev.driver.MemUnmap(s.base, uint64(s.size)),
		s.dev.driver.MemAddressFree(s.base, uint64(s.size)))
}

// newSegment makes a segment with room for n bytes and gives its file to the keeper.
func newSegment(dev *Device, d *shm.Domain, n int) (*segment, error) {
	if err := follow(d); err != nil {
		return nil, err
	}
	r, err := dev.use()
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
	release := func() error { return dev.do(func(cudriver.Stream) error { return dev.driver.MemRelease(h) }) }
	if s.block, err = d.Alloc(0); err != nil {
		return nil, errors.Join(err, release())
	}
	f, err := dev.export(h)
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
	err = d.do(func(cudriver.Stream) error {
		h, err = d.driver.MemCreate(uint64(n), cudriver.Pinned(d.id, true))
		return err
	})
	return h, err
}

// export returns the file of memory.
func (d *Device) export(h cudriver.MemHandle) (f *os.File, err error) {
	err = d.do(func(cudriver.Stream) error {
		f, err = sys.FileOf("segment", func() (int, error) { return d.driver.MemExport(h) })
		return err
	})
	return f, err
}

// mapIn gives memory an address, at which it stays when the handle has gone.
func (s *segment) mapIn(h cudriver.MemHandle) error {
	driver := s.dev.driver
	return s.dev.doSettled(func() (err error) {
		defer func() { err = errors.Join(err, driver.MemRelease(h)) }()
		if err = s.dev.leaveLate(s.d); err != nil {
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
			return errors.Join(err, s.leave())
		}
		return nil
	})
}

// importSegment returns the segment of a block, of which the caller has a reference, with one more
// allocation counted.
func importSegment(d *shm.Domain, block shm.Handle) (*segment, error) {
	if s := enterSegment(block, nil); s != nil {
		return s, nil
	}
	if err := follow(d); err != nil {
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
	err = dev.do(func(cudriver.Stream) error {
		return useNumber(file, func(fd int) (err error) {
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

// useNumber runs f with the number of an open file.
func useNumber(file *os.File, f func(fd int) error) (err error) {
	raw, failed := file.SyscallConn()
	if failed != nil {
		return failed
	}
	if failed := raw.Control(func(fd uintptr) { err = f(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// enterSegment counts one more allocation of a segment: of that in the table, or else of fresh,
// which is entered then, unless it is nil.
func enterSegment(block shm.Handle, fresh *segment) *segment {
	segments.Lock()
	s := segments.m[block]
	if s == nil && fresh != nil {
		segments.m[block], s = fresh, fresh
	}
	if s != nil {
		s.refs++
	}
	segments.Unlock()
	if fresh != nil && fresh != s { // two imported it at once
		fresh.unmap()
	}
	return s
}

// deviceOf finds a device by its identity.
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
	return nil, fmt.Errorf("%w: this process does not see the one with UUID %x", ErrDevice, uuid)
}
