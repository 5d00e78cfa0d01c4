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

// Note [Regions] A region is a file that both sides map: a file of ours, which PyTorch was given or
// can be given, or a file of PyTorch's. It is mapped once, however often and under whatever name it
// arrives, and is found by device and inode. Tenants are the storages on a region. There is one.
// For a moment there are two, if a tensor comes back while the garbage collector ends the storage
// with which it left.
//
// A file without a name is exactly the storage. A named file, in /dev/shm, has 64 bytes before the
// storage, of which the first 4 count the references: one for each opener and one for each message.
// The process that lets the count fall to 0 removes the name.

// headerSize is the size of the header before a storage in a named file.
const headerSize = 64

// shmDir is the directory in which the C library has named shared memory.
const shmDir = "/dev/shm"

// The lock of regions guards a region, except the fields that never change.
type region struct {
	file    *os.File // a description of ours that the kernel counts; see sys.OpenElsewhere
	mem     []byte   // the whole mapping
	backed  int      // how much of mem has pages, from the begin on
	nbytes  int      // of the storage, as PyTorch was told or has told
	id      sys.FileID
	ours    bool
	name    string // as shm_open knows it; "" for a file without a name
	manager []byte // PyTorch's manager that removes the name

	tenants int
	storage weak.Pointer[tensor.Storage]
	watch   int       // number in the watch; 0 outside of it
	sends   int       // openings to be expected
	opens   int       // openings that were seen
	peers   []process // processes that may open it
}

// data is the memory of the storage.
func (r *region) data() []byte { return r.mem[r.header() : r.header()+r.nbytes : r.header()+r.nbytes] }

func (r *region) header() int {
	if r.name == "" {
		return 0
	}
	return headerSize
}

// count is the number of references of a named region.
func (r *region) count() *atomic.Int32 { return sys.Counter(r.mem) }

// path is the path of a named region.
func (r *region) path() string { return shmDir + r.name }

// newRegion makes a region of ours with room for n bytes.
func newRegion(n int, named bool) (_ *region, err error) {
	r := &region{nbytes: n, ours: true}
	if named {
		err = r.createNamed()
	} else {
		err = r.createFile()
	}
	if err != nil {
		return nil, fmt.Errorf("new memory for PyTorch: %w", err)
	}
	if err := r.prepare(capacity(n)); err != nil {
		r.discard()
		return nil, fmt.Errorf("new memory for PyTorch: %w", err)
	}
	return r, nil
}

// createFile makes a memory file, and keeps a description of it that the kernel counts.
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

// prepare gives the file its size for ever, pages for the storage, and maps it.
func (r *region) prepare(room int) (err error) {
	size := r.header() + room
	if err := sys.CheckFileSize(int64(size)); err != nil { // files in memory have sizes too
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
	if err := r.commit(); err != nil {
		return err
	}
	if r.id, _, err = sys.Identify(r.file); err != nil {
		return err
	}
	if r.mem, err = sys.Map(r.file, size); err != nil {
		return err
	}
	r.populate(0)
	if r.name != "" {
		r.count().Store(1)
	}
	return nil
}

// commit backs the storage with pages. If the machine, a control group or /dev/shm has no room,
// commit returns an error. Without it a later access would be a signal.
func (r *region) commit() error {
	need := r.header() + r.nbytes
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
	r.populate(from)
	return nil
}

// populate puts the pages from a place on into the page tables, if there is a mapping. All pages at
// once cost a fraction of a page fault for each.
func (r *region) populate(from int) {
	if r.mem != nil {
		sys.Populate(r.mem[from/pageSize*pageSize : r.backed])
	}
}

var pageSize = os.Getpagesize()

// askFrom is the size from which checkRoom asks the machine for room. Asking takes as long as
// filling a storage of that size.
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
		return fmt.Errorf("%d bytes where there is room for %d: %w", need-have, room, arena.ErrNoSpace)
	}
	return nil
}

// room is the largest size of a storage on the region.
func (r *region) room() int { return len(r.mem) - r.header() }

// discard gives up the region and its file. The memory must not be used any more.
func (r *region) discard() error {
	if r.name != "" {
		if r.mem == nil {
			os.Remove(r.path())
		} else if fault := Guard(func() { r.drop() }); fault != nil {
			os.Remove(r.path()) // the count is gone with its page
		}
	}
	var err error
	if r.mem != nil {
		err = sys.Unmap(r.mem)
	}
	r.file.Close()
	return err
}

// drop gives up one reference of a named region.
func (r *region) drop() {
	if r.count().Add(-1) == 0 {
		os.Remove(r.path())
	}
}

// named reports whether the name still exists and is this file's. A manager of PyTorch's removes
// names when its processes have ended.
func (r *region) named() bool {
	f, err := os.OpenFile(r.path(), os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	id, _, err := sys.Identify(f)
	return err == nil && id == r.id
}

// capacity rounds n up to a size for which regions are used again: powers of two, at least a page.
// Only the used part has pages.
func capacity(n int) int {
	c := 4096
	for c < n {
		c *= 2
	}
	return c
}
