package pool

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/wire"
)

// Sentinels of this package; the errors that it returns are or wrap them.
var (
	// ErrClosed is the error of tasks that are handed in after Finish or Close, and of those that
	// Close has ended. It wraps os.ErrClosed.
	ErrClosed = fmt.Errorf("pool: closed%.0w", os.ErrClosed)

	// ErrBroken is the error of all tasks when no worker can be started or initialised any more; it
	// comes with the reason, and with that of each rank where several workers had begun. While one
	// works the pool goes on, and starts others after growing pauses.
	ErrBroken = errors.New("pool: no worker can be started")

	// ErrTimeout is wrapped where a task took longer than Options.TaskTimeout. It wraps
	// context.DeadlineExceeded.
	ErrTimeout = fmt.Errorf("pool: the task took too long: %w", context.DeadlineExceeded)

	// ErrRunning is returned by Join of a pool that takes tasks, which would wait for ever.
	ErrRunning = errors.New("pool: call Finish or Close before Join")

	// ErrNotReady is wrapped by the error of IMap.Next when its context ends first.
	ErrNotReady = errors.New("pool: no result yet")
)

var errDropped = errors.New("pool: nobody wants the result any more")

// A TaskError says which task failed, and why.
type TaskError struct {
	Func  string // name given to Register
	Index int    // of the value among those of its call, from 0; of a chunk that died with its worker, the first
	Err   error  // what the function returned, or a *shoal.ProcessError
}

// Error returns one line.
func (e *TaskError) Error() string {
	return fmt.Sprintf("pool: task %d of %s: %v", e.Index, e.Func, e.Err)
}

// Unwrap returns Err.
func (e *TaskError) Unwrap() error { return e.Err }

// A worker that uses a pool itself passes these on.
func init() {
	wire.RegisterError("pool.ErrClosed", ErrClosed)
	wire.RegisterError("pool.ErrBroken", ErrBroken)
	wire.RegisterError("pool.ErrTimeout", ErrTimeout)
}
