package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
)

// known finds the storage of a block that arrives once more, so that views of one storage stay
// views of one storage.
var known knownBlocks

// knownBlocks has a table for each domain that this process has been in.
type knownBlocks struct {
	last atomic.Pointer[blockTable] // the one that was asked for last
	all  sync.Map                   // of *blockTable by *arena.Domain
}

// of returns the table of a domain.
func (k *knownBlocks) of(d *arena.Domain) *blockTable {
	if t := k.last.Load(); t != nil && t.domain == d {
		return t
	}
	t, _ := k.all.LoadOrStore(d, &blockTable{domain: d})
	table := t.(*blockTable)
	k.last.Store(table)
	return table
}

// A blockTable has the leases of a domain's blocks by their index. A block that was given back may
// still be there; its lease says so.
type blockTable struct {
	domain *arena.Domain
	pages  [arena.MaxBlocks / blocksPerPage]atomic.Pointer[blockPage]
}

const blocksPerPage = 4096

type blockPage [blocksPerPage]atomic.Pointer[lease]

// place returns where the lease of a block stands.
func (t *blockTable) place(h arena.Handle) *atomic.Pointer[lease] {
	i := h.Index()
	page := &t.pages[i/blocksPerPage]
	p := page.Load()
	if p == nil {
		page.CompareAndSwap(nil, new(blockPage))
		p = page.Load()
	}
	return &p[i%blocksPerPage]
}

// open returns the storage that has a block, with one view more, or nil.
func (t *blockTable) open(h arena.Handle) *Storage {
	at := t.place(h)
	return at.Load().open(at)
}

// openOrPut is open, or makes l the lease of its block and returns nil.
//
// It takes no place from a lease that ends: until l had the place, that lease could have been
// dropped and, with the block again, put back, and the block would have two storages. A lease whose
// storage was collected is never put back.
func (t *blockTable) openOrPut(l *lease) *Storage {
	at := t.place(l.block)
	for {
		old := at.Load()
		if s := old.open(at); s != nil {
			return s
		}
		if old != nil && old.storage.Value() != nil {
			runtime.Gosched() // the goroutine that ended its life drops it next
			continue
		}
		if at.CompareAndSwap(old, l) {
			return nil
		}
	}
}

// put makes l the lease of its block, of which no other storage is. A block that no message has had
// yet cannot arrive: so the storage is put where its first message is written.
func (t *blockTable) put(l *lease) {
	if at := t.place(l.block); at.Load() != l {
		at.Store(l)
	}
}

// drop forgets l.
func (t *blockTable) drop(l *lease) {
	if at := t.place(l.block); at.Load() == l {
		at.CompareAndSwap(l, nil)
	}
}

// open returns the lease's storage with one view more, or nil if its life is over. The storage may
// begin another life after the caller found l at a place, with any block, and even with the same
// one before it is put there. So it counts only if l is at that place while the view keeps it in
// its life. No lease means no storage.
func (l *lease) open(at *atomic.Pointer[lease]) *Storage {
	if l == nil {
		return nil
	}
	s := l.storage.Value()
	if s == nil || !s.retainOpen() {
		return nil
	}
	if at.Load() == l {
		return s
	}
	s.release()
	return nil
}
