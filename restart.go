package shoal

import (
	"log/slog"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// Restart is a policy for processes that fail. A process that the group has cancelled, or that its
// starter has ended, is not started again.
//
// A process that could not be started for want of descriptors, processes or memory (EMFILE, ENFILE,
// EAGAIN, ENOMEM) has failed as well: the policy applies, also to its first start. Another error of
// a start ends the process for good.
//
// Each restart is a warning by package log/slog, a call of Options.OnRestart, and counted: see
// Process.Restarts, and Restarts of [MemoryStats].
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

// A RestartEvent says which process is started again, and why. Options.OnRestart receives it.
type RestartEvent struct {
	Func    string
	Rank    int
	Attempt int           // 1 for the first restart of the process
	Pause   time.Duration // until the restart
	Err     error         // a *ProcessError: how the process ended, or, with PID 0, why it could not be started
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

// reportRestart tells that a process is started again.
func (g *Group) reportRestart(e RestartEvent) {
	slog.Warn("shoal: a process has failed and is started again", "func", e.Func, "rank", e.Rank, "attempt", e.Attempt,
		"pause", e.Pause, "cause", e.Err)
	if g.opts.OnRestart != nil {
		go g.opts.OnRestart(e)
	}
}

// countRestart counts a process that is started again.
func (p *Process) countRestart() {
	p.mu.Lock()
	p.restarts++
	p.mu.Unlock()
	if d := arena.Current(); d != nil {
		d.CountRestart()
	}
}
