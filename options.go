package shoal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Options are the options of a [Group]. The zero value contains the defaults.
type Options struct {
	// Start is the start method.
	Start StartMethod

	// Workers is the expected number of processes, for the thread budget: each gets
	// Threads()/Workers, but at least one. 0 means one thread for each process.
	Workers int

	// Threads overrides the number of threads of a worker. 0 means its share.
	Threads int

	// Grace is the time from the cancellation of a worker to SIGTERM, and from SIGTERM to SIGKILL.
	// The default is 2 s.
	Grace time.Duration

	// OrphanGrace is how long a worker and its descendants may run after their parent has died, for
	// any reason. The default is 50 ms.
	OrphanGrace time.Duration

	// Restart is the policy for processes that fail. The zero value does nothing.
	Restart Restart

	// OnRestart, if not nil, is called for each restart, before the pause. Each call runs on its
	// own goroutine, which may close the group.
	OnRestart func(RestartEvent)

	// FirstRank is the rank of the first process of each function. It should be 0 unless a group
	// replaces a process of another one.
	FirstRank int

	// Files are passed to each process, which gets them with [File], like ExtraFiles but for every
	// start method. The caller still owns them and must keep them open while processes are started.
	// A restarted process gets them even if the caller has closed them. To pass a listener, use the
	// result of its method File; the worker converts it with net.FileListener.
	Files []*os.File

	// Executable is the program to start. It must be a build of the running program, with the same
	// functions and the same types. Empty means the running program.
	Executable string

	// Env contains entries KEY=VALUE that replace or add to this process's environment.
	Env []string

	// WorkDir is the working directory. Empty means the current one.
	WorkDir string

	// Nice is the niceness, -20 to 19. 0 means unchanged. A value below the current niceness
	// requires privileges.
	Nice int

	// CPUs contains sets of processors for workers: worker r is confined to CPUs[r % len(CPUs)].
	// Empty means no confinement. Threads must be set too if a worker should have a thread for each
	// of its processors.
	CPUs [][]int

	// Stdout and Stderr receive the output of workers. The defaults are os.Stdout and os.Stderr. A
	// group writes to each from one goroutine at a time.
	Stdout, Stderr io.Writer

	// Output is the treatment of the output, and Dir the directory for Files.
	Output Output
	Dir    string
}

const (
	defaultGrace       = 2 * time.Second
	defaultOrphanGrace = 50 * time.Millisecond
	defaultBackoff     = 100 * time.Millisecond
	defaultMaxBackoff  = 10 * time.Second
)

// withDefaults sets unset fields to their defaults.
func (o Options) withDefaults() Options {
	if o.Start == DefaultStart {
		o.Start = CurrentStartMethod()
	}
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.OrphanGrace = cmp.Or(o.OrphanGrace, defaultOrphanGrace)
	o.Restart.Backoff = cmp.Or(o.Restart.Backoff, defaultBackoff)
	o.Restart.MaxBackoff = cmp.Or(o.Restart.MaxBackoff, defaultMaxBackoff)
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	return o
}

// validate returns an error if no process can be started with the options, because one of them
// is out of range. It wraps [ErrStartMethod] if the start method is unknown or does not support
// the others. o must have its defaults.
func (o Options) validate() error {
	switch {
	case !o.Start.isValid():
		return fmt.Errorf("%w %v: want one of %v", ErrStartMethod, o.Start, startMethods)
	case o.Start == WarmStart && o.Output == Files:
		return fmt.Errorf("%w warm does not support Options.Output Files: use SpawnStart", ErrStartMethod)
	case slices.Contains(o.Files, nil):
		return fmt.Errorf("Options.Files[%d] is nil", slices.Index(o.Files, nil))
	case o.Nice < -20 || o.Nice > 19:
		return fmt.Errorf("Options.Nice %d, want -20 to 19", o.Nice)
	case o.Output < Lines || o.Output > Files:
		return fmt.Errorf("Options.Output %d is unknown, want Lines, PrefixRank or Files", o.Output)
	case slices.ContainsFunc(o.Env, func(entry string) bool { return strings.Index(entry, "=") < 1 }):
		return errors.New("Options.Env has an entry that is not KEY=VALUE")
	case min(o.Workers, o.Threads, o.FirstRank) < 0:
		return fmt.Errorf("Options.Workers %d, Threads %d, FirstRank %d: want 0 or more", o.Workers, o.Threads,
			o.FirstRank)
	case min(o.Grace, o.OrphanGrace, o.Restart.Backoff, o.Restart.MaxBackoff) < 0:
		return fmt.Errorf("Options.Grace %v, OrphanGrace %v, Restart.Backoff %v, Restart.MaxBackoff %v: want 0 or more",
			o.Grace, o.OrphanGrace, o.Restart.Backoff, o.Restart.MaxBackoff)
	}
	return nil
}

// workerThreads returns the number of threads that one worker may keep busy, at least 1.
func (o Options) workerThreads() int {
	switch {
	case o.Threads > 0:
		return o.Threads
	case o.Workers > 0:
		return shareThreads(Threads(), o.Workers)
	}
	return 1
}

// rankCPUs returns the numbers of the processors to which the worker with the given rank is
// confined, or nil for all.
func (o Options) rankCPUs(rank int) []int {
	if len(o.CPUs) == 0 {
		return nil
	}
	return o.CPUs[rank%len(o.CPUs)]
}
