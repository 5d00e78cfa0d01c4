package pool

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
)

// Options configure a Pool. The zero value is ready to use.
type Options struct {
	// Workers is the number of workers; 0 means shoal.Threads().
	Workers int

	// Start says how workers are started; shoal.DefaultStart means the program's default. A pool of
	// workers on goroutines has the same methods and errors, but its workers are not isolated:
	// os.Exit ends the program, and a task that ignores its context cannot be ended.
	Start shoal.StartMethod

	// Initializer is run by each worker before its first task, and by each worker that replaces
	// another.
	Initializer Initializer

	// MaxTasksPerWorker is how many chunks a worker runs before a new worker replaces it, as
	// Python's maxtasksperchild. 0 means any number.
	MaxTasksPerWorker int

	// ChunkSize is how many values a worker gets at once. For Map and StarMap, 0 means about four
	// chunks for each worker. For the other calls, 0 means 1. Func.ChunkSize overrides it for a
	// call.
	ChunkSize int

	// Window is how many values Imap and ImapUnordered draw at most beyond the results that were
	// taken. 0 means 16 chunks for each worker.
	Window int

	// TaskTimeout is how long a value may take; a chunk of n values may take n times as long. The
	// pool kills and replaces a worker that takes longer, and its task fails with ErrTimeout. 0
	// means for ever.
	TaskTimeout time.Duration

	// Retries is how often the pool runs a chunk again after its worker died or was killed for its
	// timeout. A chunk that runs again changes shared memory again. Each retry is a warning by
	// package log/slog, and counted: see Retries of shoal.MemoryStats.
	Retries int

	// OnRetry, if not nil, is called each time that a chunk is run again. Each call has a goroutine
	// of its own, on which it may close the pool.
	OnRetry func(RetryEvent)

	// Process has further options of the processes. The pool sets Start, Workers, FirstRank and
	// Restart itself, and ignores OnRestart. The default of Grace is 100 ms. The caller may close
	// Files when New has returned.
	Process shoal.Options
}

// A RetryEvent says which chunk a pool runs again, and why. Options.OnRetry receives it.
type RetryEvent struct {
	Func    string // name of the function
	Index   int    // index of the chunk's first value in its call
	Rank    int    // of the worker that died
	Attempt int    // 1 for the first retry of the chunk
	Err     error  // a *shoal.ProcessError; it wraps ErrTimeout if the pool killed the worker
}

const defaultGrace = 100 * time.Millisecond

// complete checks the options and fills in what is not set.
func (o Options) complete() (Options, error) {
	for name, n := range map[string]int{
		"Workers": o.Workers, "MaxTasksPerWorker": o.MaxTasksPerWorker, "ChunkSize": o.ChunkSize,
		"Window": o.Window, "Retries": o.Retries,
		"TaskTimeout": int(min(o.TaskTimeout, 1)),
	} {
		if n < 0 {
			return o, fmt.Errorf("pool: %s is negative", name)
		}
	}
	o.Workers = cmp.Or(o.Workers, shoal.Threads())
	o.Process.Start = cmp.Or(o.Start, o.Process.Start)
	o.Process.Workers = o.Workers
	o.Process.Restart = shoal.Restart{}
	o.Process.Grace = cmp.Or(o.Process.Grace, defaultGrace)
	return o, nil
}

// chunk returns the size of the chunks for n values, of which the call wants so many at once, or 0.
func (o Options) chunk(wanted, n int) int {
	return cmp.Or(wanted, o.ChunkSize, max(1, (n+4*o.Workers-1)/(4*o.Workers)))
}

// lazy returns the size of the chunks, and how many of them a lazy call has under way.
func (o Options) lazy(wanted int) (chunk, chunks int) {
	chunk = cmp.Or(wanted, o.ChunkSize, 1)
	if o.Window == 0 {
		return chunk, 16 * o.Workers
	}
	chunk = min(chunk, o.Window)
	return chunk, o.Window / chunk
}
