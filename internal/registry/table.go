package registry

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// begun is set by Seal.
var begun atomic.Bool

// Seal ends the registration phase of all Tables: later calls of [Table.Add] panic. It must be
// called when Main begins. Further calls are no-ops.
func Seal() { begun.Store(true) }

// Sealed reports whether [Seal] was called.
func Sealed() bool { return begun.Load() }

// A Table maps names to values. The zero Table is empty and ready to use. All methods may be called
// from several goroutines.
type Table[T any] struct {
	mu     sync.RWMutex
	byName map[string]T
}

// Add adds a value. It panics if the name is already taken, and after [Seal]. The panic message
// begins with op, which should be the name of the function that the program has called.
func (t *Table[T]) Add(op, name string, v T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, taken := t.byName[name]; taken {
		panic(fmt.Sprintf("%s(%q): name is already taken: names must be unique in a program", op, name))
	}
	if Sealed() {
		panic(fmt.Sprintf("%s(%q): called after Main has begun: declare it as a package-level variable", op, name))
	}
	if t.byName == nil {
		t.byName = make(map[string]T)
	}
	t.byName[name] = v
}

// Get returns the value for a name, and whether there is one. It may be called before and after
// [Seal].
func (t *Table[T]) Get(name string) (v T, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok = t.byName[name]
	return v, ok
}

// All calls f for each value, in no particular order, until f returns false. f must not add values,
// because the table is locked.
func (t *Table[T]) All(f func(v T) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, v := range t.byName {
		if !f(v) {
			return
		}
	}
}
