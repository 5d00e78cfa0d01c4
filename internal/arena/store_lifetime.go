package arena

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Lifetime] A slice returned by Bytes is borrowed: after this process has released the block,
// the slice still points to memory that another process may use. With SHOAL_DEBUG=lifetime in the
// environment, a process maps the data segment a second time, for Bytes alone. In this mapping a
// block is accessible only while the process holds it. The protocol itself uses the first mapping,
// and never faults. Blocks smaller than a page would share pages, so each of them takes a page in
// this mode.

// lifetimes is one process's second view of the data segment. It is nil, and its methods do
// nothing, unless SHOAL_DEBUG=lifetime is set.
type lifetimes struct {
	view   []byte
	faults *sys.Faults

	mu   sync.Mutex
	open map[uint32]*life // the blocks that this process holds
	told *contentsTable   // the same for observers; nil if there is no table
}

// A life is the time during which this process holds one block.
type life struct {
	from   callers
	is     Contents
	record int    // index of its record in told
	off, n uint64 // accessible part of the view
}

// debugLifetime reports whether SHOAL_DEBUG, a comma-separated list, contains lifetime. It returns
// an error if the list contains another word.
func debugLifetime() (bool, error) {
	on := false
	for word := range strings.SplitSeq(os.Getenv("SHOAL_DEBUG"), ",") {
		switch word {
		case "", "verify": // see verifying
		case "lifetime":
			on = true
		default:
			return false, fmt.Errorf("SHOAL_DEBUG=%s: unknown value, want lifetime", word)
		}
	}
	return on, nil
}

// newLifetimes maps the second view, entirely inaccessible; see Note [Lifetime]. It returns nil
// unless SHOAL_DEBUG=lifetime is set, and an error if SHOAL_DEBUG is invalid or the view cannot be
// mapped.
func newLifetimes(data *os.File, size int) (*lifetimes, error) {
	if on, err := debugLifetime(); !on {
		return nil, err
	}
	view, err := sys.Map(data, size)
	if err != nil {
		return nil, fmt.Errorf("%w: second view of the data segment for SHOAL_DEBUG=lifetime: %w", ErrAddressSpace, err)
	}
	t := &lifetimes{view: view, open: map[uint32]*life{}}
	if err := sys.ProtectNone(view); err != nil {
		return nil, errors.Join(err, sys.Unmap(view))
	}
	if t.faults, err = sys.WatchFaults(view); err != nil {
		return nil, fmt.Errorf("SHOAL_DEBUG=lifetime: %w", errors.Join(err, sys.Unmap(view)))
	}
	return t, nil
}

// padSize returns size, or the size of a page if that is greater and blocks are watched. A size
// of 0 stays 0.
func (t *lifetimes) padSize(size uint64) uint64 {
	if t == nil || size == 0 {
		return size
	}
	return max(size, layout.PageSize)
}

// beginHold records that this process begins to hold the block. The caller must have locked the
// block's entry in the refTable.
func (t *lifetimes) beginHold(index uint32) {
	if t != nil {
		t.recordBegin(index)
	}
}

func (t *lifetimes) recordBegin(index uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := currentCallers()
	t.open[index] = &life{from: from, record: t.told.addRecord(index, from)}
}

// openBytes returns the bytes of a block in the view, and makes them accessible. b has the same
// bytes in the first mapping, and off is their offset in the data segment. openBytes returns
// [ErrClosed] if this process does not hold the block. It returns b itself if t is nil, or if
// the block is not made of whole pages: a process that does not watch its blocks allocated it
// from a slab.
func (t *lifetimes) openBytes(b []byte, index uint32, off uint64) ([]byte, error) {
	if t == nil || len(b) == 0 || off%layout.PageSize != 0 || len(b)%layout.PageSize != 0 {
		return b, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.open[index]
	if l == nil {
		return nil, ErrClosed
	}
	n := uint64(len(b))
	mine := t.view[off : off+n : off+n]
	if l.n != n {
		if err := sys.ProtectReadWrite(mine); err != nil {
			return nil, fmt.Errorf("SHOAL_DEBUG=lifetime, see vm.max_map_count: %w", err)
		}
		l.off, l.n = off, n
	}
	return mine, nil
}

// endHold records that this process ceases to hold the block, and makes its bytes in the view
// inaccessible. The caller must have locked the block's entry in the refTable.
func (t *lifetimes) endHold(index uint32) {
	if t != nil {
		t.recordEnd(index)
	}
}

func (t *lifetimes) recordEnd(index uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeView(index, currentCallers())
}

// endAll ends the hold of every block. It must be called when this process leaves the domain.
func (t *lifetimes) endAll() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	by := currentCallers()
	for index := range t.open {
		t.closeView(index, by)
	}
	t.told = nil // its block was one of the open blocks
}

func (t *lifetimes) closeView(index uint32, by callers) {
	l := t.open[index]
	delete(t.open, index)
	if l == nil {
		return
	}
	t.told.removeRecord(l.record)
	if l.n == 0 {
		return
	}
	t.faults.Explain(int(l.off), int(l.n),
		fmt.Sprintf("shoal: slice of shared memory used after its block was closed\n"+
			"block %d, %d bytes, allocated or received here by\n%vand closed by\n%vthe use is the fault below "+
			"(SHOAL_DEBUG=lifetime)\n",
			index, l.n, l.from, by))
	// The kernel may lack memory to record the protection; then this block is not watched.
	_ = sys.ProtectNone(t.view[l.off : l.off+l.n])
}

// stack returns the call stack that allocated or received a block that this process holds, or "".
func (t *lifetimes) stack(index uint32) string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.open[index]; l != nil {
		return l.from.String()
	}
	return ""
}

// Watched reports whether this process records the call stacks and the contents of its blocks.
func (d *Domain) Watched() bool { return d.lives != nil }

// Describe records the contents of a block that this process holds. The first description is kept,
// unless it is raw: descriptions of later views cover only parts of the block.
func (d *Domain) Describe(h Handle, is Contents) {
	if d.lives == nil || !d.mem.IsAllocated(h) {
		return
	}
	d.lives.mu.Lock()
	defer d.lives.mu.Unlock()
	if l := d.lives.open[h.Block()]; l != nil && (l.is == (Contents{}) || l.is.Raw) {
		l.is = is
		d.lives.told.setContents(l.record, h.Block(), is)
	}
}

// callers is a call stack of at most maxCallers calls.
type callers []uintptr

const maxCallers = 24

func currentCallers() callers {
	var pcs [maxCallers]uintptr
	return append(callers(nil), pcs[:runtime.Callers(2, pcs[:])]...)
}

// String formats the frames outside this package. Frames of the runtime indicate that the garbage
// collector made the call.
func (c callers) String() string {
	var b strings.Builder
	for frames := runtime.CallersFrames(c); ; {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "github.com/shoal-mp/shoal/internal/arena.") {
			fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
