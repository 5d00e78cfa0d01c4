//go:build shoalcrash

package arena

import (
	"sync"
	"sync/atomic"
)

// Note [Controlled schedules] A test can take control of all goroutines that use one domain. It
// lets one of them run at a time, and chooses which one goes on before every access to a shared
// word and wherever a goroutine would block. So it explores the interleavings of the real code,
// whereas the models of test/model explore those of a description. Steps between two accesses to
// shared words affect only the goroutine's own process, so they need no choice. Time is not
// controlled: no goroutine spins or naps, and no timer repeats a wakeup.

// A controller chooses which goroutine goes on.
type controller interface {
	access(w *Word, writes bool) // called before each access
	block(ready func() bool)     // returns once ready reports true; ready must not read a Word
	spawn(f func())
	lane() int // the lane that the running goroutine tries first
}

// control is the controller, or nil unless a test has taken control.
var control atomic.Pointer[controller]

// isControlled reports whether a test has taken control.
func isControlled() bool { return control.Load() != nil }

// interleave lets the controller choose before an access to w.
func interleave(w *Word, writes bool) {
	if c := control.Load(); c != nil {
		(*c).access(w, writes)
	}
}

// blockUntil blocks until ready reports true, if a test has taken control. Otherwise it returns at
// once, and the caller must block by itself.
func blockUntil(ready func() bool) {
	if c := control.Load(); c != nil {
		(*c).block(ready)
	}
}

// controlledLane returns the lane that the running goroutine must try first. A test must have taken
// control.
func controlledLane() int { return (*control.Load()).lane() }

// spawn runs f in a new goroutine, under control if a test has taken it.
func spawn(f func()) {
	if c := control.Load(); c != nil {
		(*c).spawn(f)
	} else {
		go f()
	}
}

// A localMutex is a mutex within this process. Its holder accesses shared words, so it may lose
// control; Lock must therefore be a point of choice.
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

// isClosedChan reports whether c is closed. c must not carry values.
func isClosedChan(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
