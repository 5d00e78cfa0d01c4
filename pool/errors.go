package pool

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
)

// Sentinels of this package; the errors that it returns are or wrap them.
var (
	// ErrClosed is the error of calls after Finish or Close, and of tasks that Close ended. It
	// wraps os.ErrClosed.
	ErrClosed = fmt.Errorf("pool: closed%.0w", os.ErrClosed)

	// ErrBroken is the error of all tasks when the pool is unable to start or initialise any
	// worker. It wraps the reason of each rank. While one worker runs, the pool goes on, and starts
	// the others again after growing pauses. It also goes on for a minute if its workers have run
	// and no other can be started for want of descriptors, processes or memory.
	ErrBroken = errors.New("pool: no worker can be started")

	// ErrTimeout is wrapped where a value took longer than Options.TaskTimeout. It wraps
	// context.DeadlineExceeded.
	ErrTimeout = fmt.Errorf("pool: the task took too long: %w", context.DeadlineExceeded)

	// ErrRunning is returned by Join of a pool that still takes tasks: Join would wait for ever.
	ErrRunning = errors.New("pool: call Finish or Close before Join")

	// ErrNotReady is wrapped by the error of IMap.Next when its context ends first.
	ErrNotReady = errors.New("pool: no result yet")
)

var errDropped = errors.New("pool: nobody wants the result any more")

// A TaskError says which value of a call failed, and why.
type TaskError struct {
	Func  string // name of the function
	Index int    // index of the value in its call; of a chunk whose worker died, the first
	Err   error  // the error that the function returned, or a *shoal.ProcessError
}

// Error returns one line.
func (e *TaskError) Error() string {
	return fmt.Sprintf("pool: task %d of %s: %v", e.Index, e.Func, e.Err)
}

// Unwrap returns Err.
func (e *TaskError) Unwrap() error { return e.Err }

// A worker that uses a pool itself passes these on.
func init() {
	codec.RegisterError("pool.ErrClosed", ErrClosed)
	codec.RegisterError("pool.ErrBroken", ErrBroken)
	codec.RegisterError("pool.ErrTimeout", ErrTimeout)
	codec.RegisterError("pool.ErrNotReady", ErrNotReady)
	codec.RegisterError("pool.ErrRunning", ErrRunning)
}
