package torch

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"weak"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Regions] A region is a file that this process and PyTorch map: either created by this
// process to be sent, or created by PyTorch. It is mapped once, even if it is received several
// times and under several names, and is identified by device and inode. The storages on a region
// are its tenants. Normally there is one; there are two for a short time if a tensor is received
// again while the garbage collector finalizes the storage that was sent.
//
// A file without a name contains only the storage. A named file, in /dev/shm, has a header of 64
// bytes before the storage. The first 4 bytes of the header are the reference count, with one
// reference for each opener and one for each message. The process that decrements it to 0 must
// remove the name. See RefcountedMapAllocator in
// https://github.com/pytorch/pytorch/blob/v2.9.0/aten/src/ATen/MapAllocator.cpp.

// headerSize is the size of the header before a storage in a named file.
const headerSize = 64

// shmDir is the directory where the C library keeps named shared memory.
const shmDir = "/dev/shm"

// A region is a file with a storage: see Note [Regions]. newRegion makes one for a storage of
// this process, and [regionTable.receive] one for a storage of PyTorch. The lock of regions,
// regions.mu, guards its fields, except those that never change.
type region struct {
	file    *os.File // an open file description counted by the kernel; see sys.OpenElsewhere
	mem     []byte   // the whole mapping
	backed  int      // the length of the part of mem that has pages
	nbytes  int      // of the storage, as PyTorch knows it
	id      sys.FileID
	ours    bool
	name    string // as passed to shm_open; "" for a file without a name
	manager []byte // the PyTorch manager that removes the name

	tenants int
	storage weak.Pointer[tensor.Storage]
	watch   int       // its number in the watch, or 0
	sends   int       // expected openings through /proc
	opens   int       // observed openings
	peers   []process // processes that may still open it
}

// data returns the memory of the storage, without the header. It is valid until the region is
// discarded.
func (r *region) data() []byte {
	begin := r.headerBytes()
	end := begin + r.nbytes
	return r.mem[begin:end:end]
}

func (r *region) headerBytes() int {
	if r.name == "" {
		return 0
	}
	return headerSize
}

// refCount returns the reference count of a named region, in its shared header. An access may
// fault if PyTorch has truncated the file: see [Guard].
func (r *region) refCount() *atomic.Int32 { return sys.Counter(r.mem) }

// path returns the path of a named region in /dev/shm.
func (r *region) path() string { return shmDir + r.name }

// newRegion creates a region for an uninitialized storage of n bytes: a file in /dev/shm if
// named, and otherwise a file without a name. The caller must call discardRegion. The error
// wraps shm.ErrNoSpace if the memory is exhausted.
func newRegion(n int, named bool) (_ *region, err error) {
	r := &region{nbytes: n, ours: true}
	if named {
		err = r.createNamed()
	} else {
		err = r.createFile()
	}
	if err != nil {
		return nil, fmt.Errorf("allocate memory for PyTorch: %w", err)
	}
	if err := r.prepareFile(roundCapacity(n)); err != nil {
		r.discardRegion()
		return nil, fmt.Errorf("allocate memory for PyTorch: %w", err)
	}
	return r, nil
}

// createFile sets r.file to a new memory file without a name. It reopens the file, because the
// kernel counts only descriptions opened in that way: see sys.OpenElsewhere.
func (r *region) createFile() error {
	first, err := sys.Memfd("shoal-torch")
	if err != nil {
		return err
	}
	defer first.Close()
	r.file, err = sys.Reopen(first)
	return err
}

func (r *region) createNamed() (err error) {
	sweepOnce()
	if r.name, err = freshName(); err != nil {
		return err
	}
	if r.file, err = os.OpenFile(r.path(), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if _, err = sys.LockByte(r.file, ownerLock); err != nil {
		err = errors.Join(err, os.Remove(r.path()), r.file.Close())
	}
	return err
}

// prepareFile sets the final size of the file to the header and room bytes, allocates the pages
// of the storage, and maps the file. On an error, the caller must call discardRegion.
func (r *region) prepareFile(room int) (err error) {
	size := r.headerBytes() + room
	if err := sys.CheckFileSize(int64(size)); err != nil { // RLIMIT_FSIZE applies to memory files too
		return err
	}
	if err := sys.Resize(r.file, int64(size)); err != nil {
		return err
	}
	if r.name == "" {
		if err := sys.Seal(r.file); err != nil {
			return err
		}
	}
	if err := r.commitPages(); err != nil {
		return err
	}
	if r.id, _, err = sys.Identify(r.file); err != nil {
		return err
	}
	if r.mem, err = sys.Map(r.file, size); err != nil {
		return err
	}
	r.populatePages(0)
	if r.name != "" {
		r.refCount().Store(1)
	}
	return nil
}

// commitPages allocates the pages of the storage that the file does not have yet. The error
// wraps shm.ErrNoSpace if the memory of the machine, of a control group or of /dev/shm is
// exhausted; without this call, a later access would raise SIGBUS.
func (r *region) commitPages() error {
	need := r.headerBytes() + r.nbytes
	if need <= r.backed {
		return nil
	}
	if err := r.checkRoom(int64(need)); err != nil {
		return err
	}
	if err := sys.Commit(r.file, int64(r.backed), int64(need-r.backed)); errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", arena.ErrNoSpace, err)
	} else if err != nil {
		return err
	}
	from := r.backed
	r.backed = need
	r.populatePages(from)
	return nil
}

// populatePages adds the pages from the byte offset from up to r.backed to the page tables, if
// the region is mapped. This costs a fraction of one page fault per page.
func (r *region) populatePages(from int) {
	if r.mem != nil {
		sys.Populate(r.mem[from/pageSize*pageSize : r.backed])
	}
}

var pageSize = os.Getpagesize()

// askFrom is the size from which checkRoom checks the available memory. The check takes as long as
// writing a storage of that size.
const askFrom = 2 << 20

func (r *region) checkRoom(need int64) error {
	if need < askFrom {
		return nil
	}
	have, err := sys.Allocated(r.file)
	if err != nil || have >= need {
		return err
	}
	machine, err := sys.MemoryLimit()
	if err != nil {
		return err
	}
	room := machine.Headroom()
	if files, err := sys.FileSystemRoom(r.file); err == nil && files >= 0 {
		room = min(room, files)
	}
	if need-have > room {
		return fmt.Errorf("need %d bytes, %d are free: %w", need-have, room, arena.ErrNoSpace)
	}
	return nil
}

// capacityBytes returns the largest size in bytes of a storage on the region.
func (r *region) capacityBytes() int { return len(r.mem) - r.headerBytes() }

// discardRegion unmaps the region, closes its file, and drops its reference to a name. The
// caller must make sure that its memory is not used any more.
func (r *region) discardRegion() error {
	if r.name != "" {
		if r.mem == nil {
			os.Remove(r.path())
		} else if fault := Guard(func() { r.dropReference() }); fault != nil {
			os.Remove(r.path()) // the count was in a truncated page
		}
	}
	var err error
	if r.mem != nil {
		err = sys.Unmap(r.mem)
	}
	r.file.Close()
	return err
}

// dropReference releases one reference of a named region, and removes the name with the last
// one. It faults if PyTorch has truncated the file: see [Guard].
func (r *region) dropReference() {
	if r.refCount().Add(-1) == 0 {
		os.Remove(r.path())
	}
}

// isNamed reports whether the name of a named region still refers to its file. A PyTorch manager
// removes names when its processes have ended.
func (r *region) isNamed() bool {
	f, err := os.OpenFile(r.path(), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	id, _, err := sys.Identify(f)
	return err == nil && id == r.id
}

// roundCapacity rounds a size in bytes up to one at which regions can be reused: a power of two
// of at least 4096. Only the used part has pages.
func roundCapacity(n int) int {
	c := 4096
	for c < n {
		c *= 2
	}
	return c
}
