package codec

import "sync"

// A book is a registry of entries of type T. Package initializers add entries, and enter puts
// each into the tables of the registry, which the book's lock guards. In a worker, entries are
// checked and entered only at the first lookup, because the parent process runs the same program
// and has checked them, and most workers look up little or nothing.
type book[T any] struct {
	sync.RWMutex
	late  []T // registered, but not entered yet
	enter func(T)
}

// addEntries registers entries. Unless types are trusted, see [Trust], it enters them at once,
// and panics if enter does.
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
// It must be called before each lookup.
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
