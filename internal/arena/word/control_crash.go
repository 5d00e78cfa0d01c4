//go:build shoalcrash

package word

import (
	"sync"
	"sync/atomic"
)

// Note [Controlled schedules] A test can take control of all goroutines that use one domain. It
// lets one of them run at a time, and chooses which one goes on before every access to a shared
// word and wherever a goroutine would block. So it explores the interleavings of the real code,
// whereas the models of test/model explore interleavings of a description. Steps between two
// accesses to shared words affect only the goroutine's own process, so they need no choice. Time is
// not controlled: no goroutine spins or naps, and no timer repeats a wakeup.

// A Controller chooses which goroutine goes on. A test sets one by [Control]; the goroutines
// under control call its methods.
type Controller interface {
	Access(w *Word, writes bool) // called before each access
	Block(ready func() bool)     // returns once ready reports true; ready must not read a Word
	Spawn(f func())
	Lane() int // the lane that the running goroutine tries first
}

// Control is the controller, or nil unless a test has taken control.
var Control atomic.Pointer[Controller]

// IsControlled reports whether a test has taken control.
func IsControlled() bool { return Control.Load() != nil }

// interleave lets the controller choose before an access to w.
func interleave(w *Word, writes bool) {
	if c := Control.Load(); c != nil {
		(*c).Access(w, writes)
	}
}

// BlockUntil blocks until ready reports true, if a test has taken control. Otherwise it returns at
// once, and the caller must block by itself.
func BlockUntil(ready func() bool) {
	if c := Control.Load(); c != nil {
		(*c).Block(ready)
	}
}

// ControlledLane returns the lane that the running goroutine must try first. A test must have taken
// control.
func ControlledLane() int { return (*Control.Load()).Lane() }

// Spawn runs f in a new goroutine, under control if a test has taken it.
func Spawn(f func()) {
	if c := Control.Load(); c != nil {
		(*c).Spawn(f)
	} else {
		go f()
	}
}

// A LocalMutex is a mutex within this process. Its holder accesses shared words, so it may lose
// control; Lock must therefore be a point of choice.
type LocalMutex struct{ mu sync.Mutex }

func (m *LocalMutex) Lock() {
	BlockUntil(func() bool {
		free := m.mu.TryLock()
		if free {
			m.mu.Unlock()
		}
		return free
	})
	m.mu.Lock()
}

func (m *LocalMutex) Unlock() { m.mu.Unlock() }

// IsClosedChan reports whether c is closed. c must not carry values.
func IsClosedChan(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
