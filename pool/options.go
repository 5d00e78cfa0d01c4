package pool

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
)

// Options configure a Pool. The zero value is valid.
type Options struct {
	// Workers is the number of workers. The default is shoal.Threads().
	Workers int

	// Initializer is run by each worker, including replacements, before its first task.
	Initializer Initializer

	// MaxTasksPerWorker is the number of chunks after which a worker is replaced, like Python's
	// maxtasksperchild. 0 means no limit.
	MaxTasksPerWorker int

	// ChunkSize is the number of values that are sent to a worker at once. The default for Map and
	// StarMap results in about four chunks per worker, or in fewer if earlier calls of the function
	// show that such a chunk takes less than 50 µs, but not in fewer than one. For the other calls
	// it is 1. [Func.ChunkSize] overrides it.
	ChunkSize int

	// Window is the maximum number of values that Imap and ImapUnordered pull ahead of the results
	// taken. The default is 16 chunks per worker.
	Window int

	// TaskTimeout limits the time per value; a chunk of n values may take n times as long. A worker
	// that exceeds it is killed and replaced, and its task fails with [ErrTimeout]. 0 means no
	// limit.
	TaskTimeout time.Duration

	// Retries is the number of times that a chunk is run again after its worker died or was killed
	// for its timeout. Functions should be idempotent with respect to shared memory, because a
	// retried chunk changes it again. Each retry is logged as a warning with package log/slog and
	// counted in the Retries of shoal.MemoryStats.
	Retries int

	// StartRetries is the number of times that a worker is started again after a signal killed it
	// before it was ready, if no other worker is ready. Then the pool fails with [ErrBroken]. The
	// effective value is at least Retries and at least 4.
	StartRetries int

	// OnRetry, if not nil, is called each time a chunk is run again. Each call runs on its own
	// goroutine and may close the pool.
	OnRetry func(RetryEvent)

	// Process contains further options of the worker processes. The pool overrides Workers,
	// FirstRank and Restart, and ignores OnRestart. The default of Grace is 100 ms. The caller may
	// close Files after [New] returns.
	//
	// Process.Start is the start method of the workers. A pool with workers on goroutines
	// (shoal.GoroutineStart) has the same methods and errors, but the workers are not isolated:
	// os.Exit ends the program, and a task that ignores its context cannot be ended. Functions get
	// copies of their arguments, and callers get copies of the results, as with processes. Numbers,
	// booleans, strings, and structs of these are copied without encoding them.
	Process shoal.Options
}

// A RetryEvent describes a chunk that is run again. See Options.OnRetry.
type RetryEvent struct {
	Func    string // name of the function
	Index   int    // index of the chunk's first value in its call
	Rank    int    // rank of the worker that died
	Attempt int    // 1 for the first retry of the chunk
	Err     error  // a *shoal.ProcessError; wraps ErrTimeout if the pool killed the worker
}

const defaultGrace = 100 * time.Millisecond

// withDefaults returns the options with the defaults filled in. It returns an error if one of
// them is negative.
func (o Options) withDefaults() (Options, error) {
	for name, n := range map[string]int{
		"Workers": o.Workers, "MaxTasksPerWorker": o.MaxTasksPerWorker, "ChunkSize": o.ChunkSize,
		"Window": o.Window, "Retries": o.Retries, "StartRetries": o.StartRetries,
		"TaskTimeout": int(min(o.TaskTimeout, 1)),
	} {
		if n < 0 {
			return o, fmt.Errorf("pool: Options.%s is negative, want 0 or more", name)
		}
	}
	o.Workers = cmp.Or(o.Workers, shoal.Threads())
	o.Process.Start = cmp.Or(o.Process.Start, shoal.CurrentStartMethod())
	o.Process.Workers = o.Workers
	o.Process.Restart = shoal.Restart{}
	o.Process.Grace = cmp.Or(o.Process.Grace, defaultGrace)
	return o, nil
}

// chunkSize returns the chunk size, in values, for a call with n values. wanted is the
// function's own chunk size, or 0. perValue is the estimated time of a value, or 0 if it is
// unknown.
//
// A chunk of tiny tasks takes less than waking its worker, so default chunks are enlarged to
// wakeTime of work. If the estimate is too low, each worker still gets a share of the values.
// MaxTasksPerWorker counts chunks, so there the number of chunks does not depend on time.
func (o Options) chunkSize(wanted, n int, perValue time.Duration) int {
	size := cmp.Or(wanted, o.ChunkSize)
	if size != 0 {
		return size
	}
	size = max(1, divideUp(n, 4*o.Workers))
	if perValue > 0 && o.MaxTasksPerWorker == 0 {
		size = max(size, min(int(wakeTime/perValue), divideUp(n, o.Workers)))
	}
	return size
}

// divideUp returns n/by, rounded up.
func divideUp(n, by int) int { return (n + by - 1) / by }

// imapWindow returns the chunk size of Imap, in values, and the maximum number of chunks in
// flight. wanted is the function's own chunk size, or 0.
func (o Options) imapWindow(wanted int) (chunk, chunks int) {
	chunk = cmp.Or(wanted, o.ChunkSize, 1)
	if o.Window == 0 {
		return chunk, 16 * o.Workers
	}
	chunk = min(chunk, o.Window)
	return chunk, o.Window / chunk
}
