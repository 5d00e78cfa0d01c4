//go:build shoalcrash

package arena

import (
	"sync"
	"sync/atomic"
)

// Note [Controlled schedules] A test takes control of the goroutines that use one domain. It lets
// one of them run at a time. Before every access to a shared word, and wherever a goroutine would
// block, the test decides which one goes on. So it tries all orders of their steps in this very
// code, whereas the models of test/model try those of a description. What a goroutine does
// between two accesses to shared words concerns its own process alone and needs no decision. Time
// is not controlled: nobody spins or naps, and no timer wakes a second time.

// A controller decides which goroutine goes on.
type controller interface {
	access(w *Word, writes bool) // is called before it
	block(ready func() bool)     // returns when ready, which reads no Word
	spawn(f func())
	lane() int // where the running goroutine looks for a lane first
}

// control is nil unless a test has taken control.
var control atomic.Pointer[controller]

func controlled() bool { return control.Load() != nil }

func interleave(w *Word, writes bool) {
	if c := control.Load(); c != nil {
		(*c).access(w, writes)
	}
}

func blockUntil(ready func() bool) {
	if c := control.Load(); c != nil {
		(*c).block(ready)
	}
}

func controlledLane() int { return (*control.Load()).lane() }

func spawn(f func()) {
	if c := control.Load(); c != nil {
		(*c).spawn(f)
	} else {
		go f()
	}
}

// A localMutex is a mutex of this process under which shared words are looked at: so its holder may
// lose control.
type localMutex struct{ mu sync.Mutex }

func (m *localMutex) Lock() {
	blockUntil(func() bool {
		free := m.mu.TryLock()
		if free {
			m.mu.Unlock()
		}
		return free
	})
	m.mu.Lock()
}

func (m *localMutex) Unlock() { m.mu.Unlock() }

// ended reports whether c is closed.
func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
