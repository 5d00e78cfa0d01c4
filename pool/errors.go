package pool

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sentinel"
)

// Errors of this package. Returned errors are or wrap one of them; test for them with [errors.Is].
var (
	// ErrClosed is returned by calls after Finish or Close, and for tasks that Close aborted. It
	// wraps [os.ErrClosed].
	ErrClosed = sentinel.New("pool: closed", os.ErrClosed)

	// ErrBroken is returned for all tasks if the pool cannot start its workers. It wraps the
	// reason. The pool breaks if a rank that had no ready worker before fails by itself, for
	// example because its initializer returns an error. It also breaks if no worker is running and
	// each rank has reached its limit of attempts to start one. While a worker runs, the pool
	// retries failed starts with increasing pauses. If workers have run before, and a new one
	// cannot be started for lack of descriptors, processes or memory, the pool retries for a
	// minute.
	ErrBroken = errors.New("pool: cannot start workers")

	// ErrTimeout is wrapped by the error of a task that exceeded Options.TaskTimeout. It wraps
	// [context.DeadlineExceeded].
	ErrTimeout = fmt.Errorf("pool: task timed out: %w", context.DeadlineExceeded)

	// ErrCanceled is the error of a call that [Result.Cancel] or [Pool.CancelPending] canceled. It
	// wraps [context.Canceled].
	ErrCanceled = fmt.Errorf("pool: call canceled: %w", context.Canceled)

	// ErrRunning is returned by Join if neither Finish nor Close was called: Join would block
	// forever.
	ErrRunning = errors.New("pool: call Finish or Close before Join")

	// ErrNotReady is wrapped by the error of IMap.Next if its context is done before the next
	// result is available.
	ErrNotReady = errors.New("pool: no result yet")
)

var errDropped = errors.New("pool: result dropped by its caller")

// A TaskError is the error of a call with a value that failed, and says which value failed and
// why.
type TaskError struct {
	Func  string // name of the function
	Index int    // index of the value in its call; if the worker died, of the chunk's first value
	Err   error  // the error returned by the function, or a *shoal.ProcessError
}

// Error returns a one-line description.
func (e *TaskError) Error() string {
	return fmt.Sprintf("pool: task %d of %s: %v", e.Index, e.Func, e.Err)
}

// Unwrap returns Err.
func (e *TaskError) Unwrap() error { return e.Err }

// The errors are registered because a worker may itself use a pool and return them.
func init() {
	codec.RegisterError("pool.ErrClosed", ErrClosed)
	codec.RegisterError("pool.ErrBroken", ErrBroken)
	codec.RegisterError("pool.ErrTimeout", ErrTimeout)
	codec.RegisterError("pool.ErrCanceled", ErrCanceled)
	codec.RegisterError("pool.ErrNotReady", ErrNotReady)
	codec.RegisterError("pool.ErrRunning", ErrRunning)
}
