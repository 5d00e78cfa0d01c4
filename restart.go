package shoal

import (
	"log/slog"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/goexit"
)

// Restart is the policy for restarting processes that fail. A process canceled by its group, or
// ended by its parent, is not restarted.
//
// A process that could not be started because of a lack of descriptors, processes or memory
// (EMFILE, ENFILE, EAGAIN, ENOMEM) counts as failed: the policy also applies to its first start.
// Other start errors are permanent.
//
// Each restart is logged as a warning by package log/slog, reported to Options.OnRestart, and
// counted: see [Process.Restarts], and Restarts of [MemoryStats].
type Restart struct {
	// Max is the maximum number of restarts of a process: 0 means none, -1 no limit. A restarted
	// process has the same rank and the original argument. Values that change meanwhile should be
	// passed as an ipc.Latest, from which the process loads the newest one. Only the failure after
	// the last restart is a failure of the group.
	//
	// A value that a process has taken from a queue by Get or All is lost with the process. A
	// restarted process should take its tasks by [ipc.Receiver.Leases] and acknowledge each one
	// when it is done: the task of a killed process then returns to the queue.
	Max int

	// Backoff is the pause before the first restart; the default is 100 ms. It doubles with each
	// restart, up to MaxBackoff; the default is 10 s. It is reset after a process has run for at
	// least MaxBackoff.
	Backoff, MaxBackoff time.Duration
}

// A RestartEvent describes a restart. It is passed to Options.OnRestart.
type RestartEvent struct {
	Func    string
	Rank    int
	Attempt int           // 1 for the first restart of the process
	Pause   time.Duration // pause before the restart
	Err     error         // a *ProcessError; its PID is 0 if the process could not be started
}

// allows reports whether a restart is allowed after n others.
func (r Restart) allows(n int) bool { return r.Max < 0 || n < r.Max }

// failuresInRow returns the number of consecutive failures, given the number n before and the
// duration of the execution that has failed now. It is 1 if that execution ran for at least
// MaxBackoff. A server that is killed once a day never waits longer.
func (r Restart) failuresInRow(n int, execution time.Duration) int {
	if execution >= r.MaxBackoff {
		return 1
	}
	return n + 1
}

// backoff returns the pause after n consecutive failures. n must be at least 1.
func (r Restart) backoff(n int) time.Duration {
	d := r.Backoff
	for ; n > 1 && d < r.MaxBackoff; n-- {
		d *= 2
	}
	return min(d, r.MaxBackoff)
}

// reportRestart logs a restart and calls Options.OnRestart, if it is set, on a new goroutine.
func (g *Group) reportRestart(e RestartEvent) {
	slog.Warn("shoal: process failed, restarting", "func", e.Func, "rank", e.Rank, "attempt", e.Attempt,
		"pause", e.Pause, "cause", e.Err)
	if g.opts.OnRestart != nil {
		go goexit.RunCallback("shoal: Options.OnRestart", func() { g.opts.OnRestart(e) })
	}
}

// countRestart adds one to [Process.Restarts] and to Restarts of [MemoryStats].
func (p *Process) countRestart() {
	p.mu.Lock()
	p.restarts++
	p.mu.Unlock()
	if d := arena.Current(); d != nil {
		d.CountRestart()
	}
}
