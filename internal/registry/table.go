package registry

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// begun is set once the program has begun.
var begun atomic.Bool

// Seal ends the time in which there are new names, for all Tables.
func Seal() { begun.Store(true) }

// Sealed reports whether Seal was called.
func Sealed() bool { return begun.Load() }

// A Table has values by name. The zero Table is empty.
type Table[T any] struct {
	mu     sync.RWMutex
	byName map[string]T
}

// Add adds a value. It panics with a text that begins with op, the function that the program has
// called, if the name is taken, or after Seal.
func (t *Table[T]) Add(op, name string, v T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.byName[name]; taken {
		panic(fmt.Sprintf("%s(%q): the name is taken; names are unique in a program", op, name))
	}
	if Sealed() {
		panic(fmt.Sprintf("%s(%q): Main has begun; declare it as a package-level variable", op, name))
	}
	if t.byName == nil {
		t.byName = make(map[string]T)
	}
	t.byName[name] = v
}

// Get returns the value of a name.
func (t *Table[T]) Get(name string) (v T, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok = t.byName[name]
	return v, ok
}

// All calls f with each value. f adds none.
func (t *Table[T]) All(f func(v T) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, v := range t.byName {
		if !f(v) {
			return
		}
	}
}
