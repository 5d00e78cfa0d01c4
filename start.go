package shoal

import (
	"errors"
	"fmt"
	"sync"
)

// A StartMethod determines how the processes of a group are started, like get_context in Python.
// All methods run the same functions.
type StartMethod int

// The start methods.
const (
	// DefaultStart is the method set by SetStartMethod, or else SpawnStart.
	DefaultStart StartMethod = iota

	// SpawnStart starts the program again for each process.
	SpawnStart

	// WarmStart sends the job to a process that was started earlier and waits for a job, like
	// Python's forkserver. Such a process does one job; its successor is started in the background.
	// See also [Warm].
	WarmStart

	// GoroutineStart runs the function on a goroutine of this process: for tests, for functions
	// that need no isolation, and for comparison. The argument is copied as for a process. When the
	// function has returned, the ends of queues and pipes in its argument are closed, as at the end
	// of a process. Panics are returned as a *ProcessError. A canceled goroutine that does not stop
	// is abandoned. Options that need a process have no effect: environment, niceness, output,
	// Threads. Goroutines cannot train one network as processes do in Hogwild: Backward panics when
	// it detects the updates of another goroutine.
	GoroutineStart
)

var startNames = [...]string{"default", "spawn", "warm", "goroutine"}

// String returns the name: default, spawn, warm or goroutine.
func (m StartMethod) String() string {
	if m.isValid() {
		return startNames[m]
	}
	return fmt.Sprintf("StartMethod(%d)", int(m))
}

func (m StartMethod) isValid() bool { return m >= 0 && int(m) < len(startNames) }

// startMethods contains all methods except DefaultStart.
var startMethods = []StartMethod{SpawnStart, WarmStart, GoroutineStart}

// ErrStartMethod is wrapped if a start method is unknown, is set twice, or does not support the
// Options.
var ErrStartMethod = errors.New("shoal: start method")

// programStart is the default start method of groups.
var programStart struct {
	mu     sync.Mutex
	method StartMethod
	set    bool
}

// SetStartMethod sets the start method of groups in this process that do not choose one. It should
// be called in main. The error wraps [ErrStartMethod] if m is unknown, or if a method is already
// set; see [ReplaceStartMethod].
func SetStartMethod(m StartMethod) error { return setStartMethod(m, false) }

// ReplaceStartMethod sets the start method like [SetStartMethod], also if one is already set. The
// error wraps [ErrStartMethod] if m is unknown.
func ReplaceStartMethod(m StartMethod) error { return setStartMethod(m, true) }

func setStartMethod(m StartMethod, replace bool) error {
	if !m.isValid() || m == DefaultStart {
		return fmt.Errorf("%w %v: want one of %v", ErrStartMethod, m, startMethods)
	}
	programStart.mu.Lock()
	defer programStart.mu.Unlock()
	if programStart.set && !replace {
		return fmt.Errorf("%w is already set to %v: ReplaceStartMethod replaces it", ErrStartMethod,
			programStart.method)
	}
	programStart.method, programStart.set = m, true
	return nil
}

// CurrentStartMethod returns the start method of groups that do not choose one. It is
// [SpawnStart] if none was set, and never [DefaultStart].
func CurrentStartMethod() StartMethod {
	programStart.mu.Lock()
	defer programStart.mu.Unlock()
	if programStart.set {
		return programStart.method
	}
	return SpawnStart
}
