package wire

import "sync"

// A book holds what is registered. In a worker nothing is entered before somebody looks something
// up: the starter, which is the same program, has made sure that it fits, and most workers look up
// little or nothing.
type book[T any] struct {
	sync.RWMutex
	late  []T // not entered yet
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

// settle enters what is late. b is locked.
func (b *book[T]) settle() {
	late := b.late
	b.late = nil
	for _, x := range late {
		b.enter(x)
	}
}

// open locks b for reading when all is entered.
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
