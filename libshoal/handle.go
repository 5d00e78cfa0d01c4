//go:build cgo && linux

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// A handle names an object in the handle table: kind 8 | generation 24 | index 32. Index 0 is not
// used, so 0 is no handle.
type handle uint64

const (
	kindShift       = 56
	generationShift = 32
	generationMask  = 1<<24 - 1
)

func makeHandle(k kind, generation, index uint32) handle {
	return handle(k)<<kindShift | handle(generation&generationMask)<<generationShift | handle(index)
}

func (h handle) index() uint32 { return uint32(h) }

// A reference is an entry of the handle table: an open handle and its use of an object.
type reference struct {
	handle handle
	object *object
	born   uint64 // number of forks before the handle was made
}

const (
	handlesPerPage = 1024
	mostPages      = 4096
)

type handlePage struct {
	references  [handlesPerPage]atomic.Pointer[reference]
	generations [handlesPerPage]uint32 // guarded by handleTable.mu
}

// A handleTable maps handles to objects. The process has one, for any goroutine. Lookups take no
// lock.
type handleTable struct {
	pages [mostPages]atomic.Pointer[handlePage]

	mu   sync.Mutex
	free []uint32
	used uint32 // number of indices that were used at some time
	open int
}

var handles handleTable

// add returns a new handle of o. The handle takes over one use of o from the caller, unless add
// returns an error. The error wraps errTooLarge if too many handles are open.
func (t *handleTable) add(o *object) (handle, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, err := t.takeIndex()
	if err != nil {
		return 0, err
	}
	page := t.pages[i/handlesPerPage].Load()
	generation := &page.generations[i%handlesPerPage]
	*generation++
	h := makeHandle(o.kind, *generation, i)
	page.references[i%handlesPerPage].Store(&reference{h, o, forks.count.Load()})
	t.open++
	return h, nil
}

// takeIndex returns a free index, from 1. The caller must hold t.mu. The error wraps errTooLarge
// if all are in use.
func (t *handleTable) takeIndex() (uint32, error) {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		return i, nil
	}
	i := t.used + 1
	if i >= handlesPerPage*mostPages {
		return 0, errNoHandle(t.used)
	}
	if p := &t.pages[i/handlesPerPage]; p.Load() == nil {
		p.Store(new(handlePage))
	}
	t.used = i
	return i, nil
}

// requireFree returns an error that wraps errTooLarge if all handles are open. A function that
// receives a message must call it first, because a message without a handle would be lost.
func (t *handleTable) requireFree() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) > 0 || t.used+1 < handlesPerPage*mostPages {
		return nil
	}
	return errNoHandle(t.used)
}

func errNoHandle(open uint32) error {
	return fmt.Errorf("%w: %d handles are open: close some with shoal_close", errTooLarge, open)
}

// entryOf returns the table entry for the index of h, or nil if the table has none. The entry
// may belong to another handle, or be empty.
func (t *handleTable) entryOf(h handle) *atomic.Pointer[reference] {
	i := h.index()
	if i/handlesPerPage >= mostPages {
		return nil
	}
	page := t.pages[i/handlesPerPage].Load()
	if page == nil {
		return nil
	}
	return &page.references[i%handlesPerPage]
}

// find returns the object of h. It adds no use: another thread may close h meanwhile. The error
// wraps errHandle if h is stale or no handle.
func (t *handleTable) find(h handle) (*object, error) {
	if e := t.entryOf(h); e != nil {
		if r := e.Load(); r != nil && r.handle == h {
			return r.object, nil
		}
	}
	return nil, fmt.Errorf("%w: %#x is not an open handle of this process", errHandle, uint64(h))
}

// remove closes h and returns its reference; the caller must release the object. The error wraps
// errHandle if h is not open. Only one of several callers with the same h succeeds.
func (t *handleTable) remove(h handle) (*reference, error) {
	if e := t.entryOf(h); e != nil {
		r := e.Load()
		if r != nil && r.handle == h && e.CompareAndSwap(r, nil) {
			t.mu.Lock()
			t.free = append(t.free, h.index())
			t.open--
			t.mu.Unlock()
			return r, nil
		}
	}
	return nil, fmt.Errorf("close: %w: %#x is not an open handle of this process", errHandle, uint64(h))
}

// count returns the number of open handles.
func (t *handleTable) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// all returns all open handles.
func (t *handleTable) all() (list []handle) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := uint32(1); i <= t.used; i++ {
		if r := t.pages[i/handlesPerPage].Load().references[i%handlesPerPage].Load(); r != nil {
			list = append(list, r.handle)
		}
	}
	return list
}

// closeHandle closes a handle. Its object is released with its last handle, or kept for a forked
// child that may import it. The error wraps errHandle if h is not open; other errors are from
// closing the object.
func closeHandle(h handle) error {
	r, err := handles.remove(h)
	if err != nil {
		return err
	}
	if forks.retainClosed(r) {
		return nil
	}
	return r.object.release()
}
