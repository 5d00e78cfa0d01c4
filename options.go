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

// Options of a Group. The zero value is good.
type Options struct {
	// Start is how processes are started.
	Start StartMethod

	// Workers is how many processes are expected, for the thread budget: each gets
	// Threads()/Workers, at least one. 0 means as many as there are threads, so each gets one.
	Workers int

	// Threads replaces the share that a worker would get.
	Threads int

	// Grace is how long a cancelled worker has until SIGTERM, and then until SIGKILL. The default
	// is 2 s.
	Grace time.Duration

	// OrphanGrace is how long a worker, and its descendants, live on after their starter has died,
	// however it died. The default is 50 ms.
	OrphanGrace time.Duration

	// Restart is the policy for a process that fails. The zero value does nothing.
	Restart Restart

	// FirstRank is the rank of the first process of each function. It is 0, unless a group replaces
	// a process of another one.
	FirstRank int

	// Files are given to each process, which gets them by [File]. They are the counterpart of
	// ExtraFiles, for every start method. They stay the caller's, and must be open while processes
	// are started. A process that is started again has them again, even if the caller has closed
	// them. Pass a listener as the file that its method File returns. net.FileListener makes a
	// listener of it in the worker.
	Files []*os.File

	// Executable is the program that is started. It must be a build of this one, with the same
	// functions and the same types. Empty means the running program.
	Executable string

	// Env has entries KEY=VALUE that replace or add to those of this process.
	Env []string

	// WorkDir is the working directory; empty means that of this process.
	WorkDir string

	// Nice is the niceness, -20 to 19. 0 leaves it unchanged. A value below that of this process
	// needs the privilege.
	Nice int

	// CPUs are the sets of processors to which workers are confined: worker r gets CPUs[r %
	// len(CPUs)]. Empty means no confinement. To have threads for all its processors a worker also
	// needs Threads.
	CPUs [][]int

	// Stdout and Stderr receive what workers print. Defaults are os.Stdout and os.Stderr. A group
	// writes to each from one goroutine at a time.
	Stdout, Stderr io.Writer

	// Output is the way of that output, and Dir the folder for Files.
	Output Output
	Dir    string
}

const (
	defaultGrace       = 2 * time.Second
	defaultOrphanGrace = 50 * time.Millisecond
	defaultBackoff     = 100 * time.Millisecond
	defaultMaxBackoff  = 10 * time.Second
)

// withDefaults fills in the fields that are not set.
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

// check finds options with which no process could be started.
func (o Options) check() error {
	switch {
	case !o.Start.valid():
		return fmt.Errorf("%w: %v is unknown; there are %v", ErrStartMethod, o.Start, startMethods)
	case o.Start == WarmStart && o.Output == Files:
		return fmt.Errorf("%w: the output of a process that waits for its job cannot go to Files; start it by spawn", ErrStartMethod)
	case slices.Contains(o.Files, nil):
		return fmt.Errorf("number %d of Files is nil", slices.Index(o.Files, nil))
	case o.Nice < -20 || o.Nice > 19:
		return fmt.Errorf("niceness %d is outside -20 to 19", o.Nice)
	case o.Output < Lines || o.Output > Files:
		return fmt.Errorf("output %d is unknown", o.Output)
	case slices.ContainsFunc(o.Env, func(entry string) bool { return strings.Index(entry, "=") < 1 }):
		return errors.New("an entry of Env is not KEY=VALUE")
	case min(o.Workers, o.Threads, o.FirstRank) < 0:
		return fmt.Errorf("one is negative of Workers %d, Threads %d and FirstRank %d", o.Workers, o.Threads,
			o.FirstRank)
	case min(o.Grace, o.OrphanGrace, o.Restart.Backoff, o.Restart.MaxBackoff) < 0:
		return fmt.Errorf("one is negative of Grace %v, OrphanGrace %v, Backoff %v and MaxBackoff %v",
			o.Grace, o.OrphanGrace, o.Restart.Backoff, o.Restart.MaxBackoff)
	}
	return nil
}

// threads returns the budget of one worker.
func (o Options) threads() int {
	switch {
	case o.Threads > 0:
		return o.Threads
	case o.Workers > 0:
		return share(Threads(), o.Workers)
	}
	return 1
}

// cpus returns the processors of the worker with that rank. It returns nil for all.
func (o Options) cpus(rank int) []int {
	if len(o.CPUs) == 0 {
		return nil
	}
	return o.CPUs[rank%len(o.CPUs)]
}

// Restart is a policy for processes that fail. A process that the group has cancelled, or that its
// starter has ended, is not started again.
type Restart struct {
	// Max is how often a process is started again after a failure, with its rank and its first
	// argument: 0 never, -1 without limit. Pass values that change meanwhile as an ipc.Latest, of
	// which the process then loads the newest. The group notices only the failure after the last
	// restart.
	//
	// A value that a process has taken from a queue by Get or All is lost with the process. A
	// process that is started again should take its tasks by [ipc.Receiver.Leases], and
	// acknowledge each one when it is done: then the task of a killed process goes back to the
	// queue.
	Max int

	// Backoff is the pause before the first restart, 100 ms by default. It doubles each time, up to
	// MaxBackoff, 10 s by default. After a process that has run for MaxBackoff or longer it is
	// Backoff again.
	Backoff, MaxBackoff time.Duration
}

// allows reports whether there is a restart after n others.
func (r Restart) allows(n int) bool { return r.Max < 0 || n < r.Max }

// row counts failures that follow one another soon: it returns their number with one that ended a
// life, where there were n before. A server that is killed once a day never waits longer.
func (r Restart) row(n int, life time.Duration) int {
	if life >= r.MaxBackoff {
		return 1
	}
	return n + 1
}

// pause returns how long to wait after n failures in a row, 1 or more.
func (r Restart) pause(n int) time.Duration {
	d := r.Backoff
	for ; n > 1 && d < r.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, r.MaxBackoff)
}
