package wire

import "sync"

// A book holds what is registered. In a worker no entry is made before the first look-up: the
// starter is the same program and has checked the entries, and most workers look up little or
// nothing.
type book[T any] struct {
	sync.RWMutex
	late  []T // registered, but not entered yet
	enter func(T)
}

// add registers more.
func (b *book[T]) add(more ...T) {
	b.Lock()
	defer b.Unlock()
	b.late = append(b.late, more...)
	if !trusted.Load() {
		b.settle()
	}
}

// settle enters the late entries. b is locked.
func (b *book[T]) settle() {
	late := b.late
	b.late = nil
	for _, x := range late {
		b.enter(x)
	}
}

// open locks b for reading when all entries are made.
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
