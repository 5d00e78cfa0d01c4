package pool

import (
	"cmp"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
)

// Options of a Pool. The zero value is good.
type Options struct {
	// Workers is how many there are; 0 means shoal.Threads().
	Workers int

	// Start is how they come to life; shoal.DefaultStart means what the program has set. Workers on
	// goroutines have the same methods and the same errors, and none of the protection: os.Exit is
	// the program's, and one that is stopped is left alone.
	Start shoal.StartMethod

	// Initializer is run by each worker before its first task, also by those that replace others.
	Initializer Initializer

	// MaxTasksPerWorker is how many calls a worker does before another one replaces it, a chunk
	// being one call, as in Python. 0 means any number.
	MaxTasksPerWorker int

	// ChunkSize is how many values a worker gets at once. 0 means, for Map and StarMap, so many
	// that each worker gets four chunks, and 1 for the others. Func.ChunkSize says it for one call.
	ChunkSize int

	// Window is how many values Imap and ImapUnordered draw from their input beyond those whose
	// results have been taken, at most. 0 means 16 chunks for each worker.
	Window int

	// TaskTimeout is how long a value may take, a chunk of n of them n times as long. A worker that
	// takes longer is killed and replaced, and its task fails with ErrTimeout. 0 means for ever.
	TaskTimeout time.Duration

	// Retries is how often a chunk is run again whose worker died, or was killed for its timeout.
	// What its values have done to shared memory before, they do again.
	Retries int

	// Process says more about the processes. Start, Workers, FirstRank and Restart are the pool's
	// own. Grace is by default 100 ms. The caller may close Files when New has returned.
	Process shoal.Options
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
