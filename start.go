package shoal

import (
	"errors"
	"fmt"
	"sync"
)

// A StartMethod says how the processes of a group come to life: Python's get_context. The functions
// are the same for all.
type StartMethod int

// The start methods.
const (
	// DefaultStart is what SetStartMethod has set, or else SpawnStart.
	DefaultStart StartMethod = iota

	// SpawnStart starts the program again for each process.
	SpawnStart

	// WarmStart hands the job to a process that was started before and waits for one: forkserver's
	// counterpart. Each serves once, and its successor is started in the background. See also
	// [Warm].
	WarmStart

	// GoroutineStart runs the function on a goroutine of this process: for tests, for functions
	// that need no protection, and to compare. The argument is copied as it is for a process,
	// panics of the function come back as a *ProcessError, and a cancelled one that does not stop
	// is left alone. What only a process has does not apply: environment, niceness, output,
	// Threads.
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

// ErrStartMethod is wrapped where a start method is unknown, set twice, or cannot do what the
// Options ask for.
var ErrStartMethod = errors.New("shoal: start method")

// programStart is what the groups of this process use if they do not say.
var programStart struct {
	mu     sync.Mutex
	method StartMethod
	set    bool
}

// SetStartMethod chooses for every group of this process that does not choose for itself. It
// belongs into main: a second call is an error, unless it is forced.
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

// CurrentStartMethod returns what groups use that do not choose.
func CurrentStartMethod() StartMethod {
	programStart.mu.Lock()
	defer programStart.mu.Unlock()
	if programStart.set {
		return programStart.method
	}
	return SpawnStart
}
