package shoal

import (
	"errors"
	"fmt"
	"sync"
)

// A StartMethod says how the processes of a group are started: Python's get_context. All methods
// run the same functions.
type StartMethod int

// The start methods.
const (
	// DefaultStart is the method that SetStartMethod has set, or else SpawnStart.
	DefaultStart StartMethod = iota

	// SpawnStart starts the program again for each process.
	SpawnStart

	// WarmStart hands the job to a process that was started before and waits for a job. It is
	// forkserver's counterpart. Each such process serves once, and its successor is started in the
	// background. See also [Warm].
	WarmStart

	// GoroutineStart runs the function on a goroutine of this process: for tests, for functions
	// that need no protection, and for comparison. The argument is copied as it is for a process.
	// When the function has returned, the ends of queues and pipes in its argument are closed, as
	// the end of a process closes them. Panics come back as a *ProcessError. A cancelled goroutine
	// that does not stop is left alone. Options that only a process can have do not apply:
	// environment, niceness, output, Threads. Goroutines cannot train one network as processes do
	// in Hogwild: Backward of one panics when it sees the steps of another.
	GoroutineStart
)

var startNames = [...]string{"default", "spawn", "warm", "goroutine"}

// String returns the name: default, spawn, warm or goroutine.
func (m StartMethod) String() string {
	if m.valid() {
		return startNames[m]
	}
	return fmt.Sprintf("StartMethod(%d)", int(m))
}

func (m StartMethod) valid() bool { return m >= 0 && int(m) < len(startNames) }

// startMethods are the methods besides DefaultStart.
var startMethods = []StartMethod{SpawnStart, WarmStart, GoroutineStart}

// ErrStartMethod is wrapped if a start method is unknown, if it is set twice, or if it cannot do
// what the Options ask for.
var ErrStartMethod = errors.New("shoal: start method")

// programStart is the start method of the groups that do not choose one.
var programStart struct {
	mu     sync.Mutex
	method StartMethod
	set    bool
}

// SetStartMethod chooses the start method of every group of this process that does not choose one
// itself. Call it in main: a second call is an error, unless it is forced.
func SetStartMethod(m StartMethod, force bool) error {
	if !m.valid() || m == DefaultStart {
		return fmt.Errorf("%w: %v is unknown; there are %v", ErrStartMethod, m, startMethods)
	}
	programStart.mu.Lock()
	defer programStart.mu.Unlock()
	if programStart.set && !force {
		return fmt.Errorf("%w: %v is set already", ErrStartMethod, programStart.method)
	}
	programStart.method, programStart.set = m, true
	return nil
}

// CurrentStartMethod returns the start method of groups that do not choose one.
func CurrentStartMethod() StartMethod {
	programStart.mu.Lock()
	defer programStart.mu.Unlock()
	if programStart.set {
		return programStart.method
	}
	return SpawnStart
}
