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

// add registers entries.
func (b *book[T]) add(more ...T) {
	b.Lock()
	defer b.Unlock()
	b.late = append(b.late, more...)
	if !trusted.Load() {
		b.settle()
	}
}

// settle enters the pending entries. The caller must hold the write lock.
func (b *book[T]) settle() {
	late := b.late
	b.late = nil
	for _, x := range late {
		b.enter(x)
	}
}

// open enters the pending entries and locks b for reading. The caller must call RUnlock.
func (b *book[T]) open() {
	for b.RLock(); len(b.late) > 0; b.RLock() {
		b.RUnlock()
		b.settleNow()
	}
}

func (b *book[T]) settleNow() {
	b.Lock()
	defer b.Unlock()
	b.settle()
}
