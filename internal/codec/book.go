package codec

import "sync"

// A book is a registry. In a worker, entries are checked and entered only at the first lookup,
// because the parent process runs the same program and has checked them, and most workers look up
// little or nothing.
type book[T any] struct {
	sync.RWMutex
	late  []T // registered, but not entered yet
	enter func(T)
}

// addEntries registers entries.
func (b *book[T]) addEntries(more ...T) {
	b.Lock()
	defer b.Unlock()
	b.late = append(b.late, more...)
	if !trusted.Load() {
		b.enterPending()
	}
}

// enterPending enters the pending entries. The caller must hold the write lock.
func (b *book[T]) enterPending() {
	late := b.late
	b.late = nil
	for _, x := range late {
		b.enter(x)
	}
}

// openForRead enters the pending entries and locks b for reading. The caller must call RUnlock.
func (b *book[T]) openForRead() {
	for b.RLock(); len(b.late) > 0; b.RLock() {
		b.RUnlock()
		b.enterPendingNow()
	}
}

func (b *book[T]) enterPendingNow() {
	b.Lock()
	defer b.Unlock()
	b.enterPending()
}
