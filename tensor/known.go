package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
)

// known maps blocks to their storages, so that a block received again gets the same storage.
var known knownBlocks

// knownBlocks has a table for each domain that this process has joined. It may be used from
// several goroutines.
type knownBlocks struct {
	last atomic.Pointer[blockTable] // the most recently used table
	all  sync.Map                   // from *arena.Domain to *blockTable
}

// tableOf returns the table of a domain. It creates the table on first use.
func (k *knownBlocks) tableOf(d *arena.Domain) *blockTable {
	if t := k.last.Load(); t != nil && t.domain == d {
		return t
	}
	t, _ := k.all.LoadOrStore(d, &blockTable{domain: d})
	table := t.(*blockTable)
	k.last.Store(table)
	return table
}

// A blockTable contains the leases of a domain's blocks by block index. It may contain the lease of
// a released block; the lease's storage is closed then.
type blockTable struct {
	domain *arena.Domain
	pages  [arena.MaxBlocks / blocksPerPage]atomic.Pointer[blockPage]
}

const blocksPerPage = 4096

type blockPage [blocksPerPage]atomic.Pointer[lease]

// entryOf returns the table entry of a block.
func (t *blockTable) entryOf(h arena.Handle) *atomic.Pointer[lease] {
	i := int(h.Block())
	page := &t.pages[i/blocksPerPage]
	p := page.Load()
	if p == nil {
		page.CompareAndSwap(nil, new(blockPage))
		p = page.Load()
	}
	return &p[i%blocksPerPage]
}

// open returns the storage of a block with one more reference, or nil if this process has no open
// storage of it.
func (t *blockTable) open(h arena.Handle) *Storage {
	at := t.entryOf(h)
	return at.Load().open(at)
}

// openOrPut is like open, but if there is no storage it makes l the lease of its block and returns
// nil.
//
// It must not replace a lease that is ending: until then, that lease could have been dropped and
// put back with the same block, and the block would have two storages. A lease whose storage has
// been collected is never put back.
func (t *blockTable) openOrPut(l *lease) *Storage {
	at := t.entryOf(l.block)
	for {
		old := at.Load()
		if s := old.open(at); s != nil {
			return s
		}
		if old != nil && old.storage.Value() != nil {
			runtime.Gosched() // the goroutine that closed the storage drops the lease next
			continue
		}
		if at.CompareAndSwap(old, l) {
			return nil
		}
	}
}

// setLease makes l the lease of its block, which must not have another storage. A block cannot be
// received before a message contains it, so setLease is called when the storage's first message is
// encoded.
func (t *blockTable) setLease(l *lease) {
	if at := t.entryOf(l.block); at.Load() != l {
		at.Store(l)
	}
}

// removeLease removes l from the table, unless the block has another lease by now.
func (t *blockTable) removeLease(l *lease) {
	if at := t.entryOf(l.block); at.Load() == l {
		at.CompareAndSwap(l, nil)
	}
}

// open returns the lease's storage with one more reference, or nil if l is nil or the storage is
// closed. After the caller read l from at, the storage may have been recycled, with any block, even
// with the same one before it is put in the table. Therefore the storage is valid only if at still
// contains l while this call holds the reference.
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
