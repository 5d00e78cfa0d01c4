package shoal

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Process is a process started by this one, or a goroutine that replaces one. Its methods may be
// called concurrently.
type Process struct {
	group *Group
	name  string
	rank  int

	ended chan struct{} // closed when the process has ended permanently
	err   error         // set before ended is closed

	origin trail       // call stack of the start
	settle func()      // calls markReceived or markLost of the argument, once
	got    atomic.Bool // whether the latest execution has had the argument
	kept   []any       // values that must stay reachable until the process has ended
	asked  atomic.Bool // ended by one of its methods, so its end is not a failure
	forced atomic.Bool // ended by its group, so its signal is not the cause of a failure

	mu        sync.Mutex
	execution execution // latest execution; nil if it could not be started
	restarts  int
}

// An execution is one execution of a Process: a child process or a goroutine. A restarted
// Process has several. Its methods may be called concurrently.
type execution interface {
	pid() int
	cancel(cause error)                        // cancels the function's context; must not block
	signal(sig os.Signal) error                // sends any signal
	terminate(sig os.Signal, why string) error // sends a signal to end it, with why in the error
	wait() error                               // waits for the end; nil or a *ProcessError; called once
}

// Name returns the name of the process's function.
func (p *Process) Name() string { return p.name }

// Rank returns the rank of the process among the processes of its function in its group.
func (p *Process) Rank() int { return p.rank }

// PID returns the process id, which changes with a restart. It is 0 if the process could not be
// started. For a goroutine it is the id of this process.
func (p *Process) PID() int {
	if l := p.currentExecution(); l != nil {
		return l.pid()
	}
	return 0
}

// Restarts returns how often the process was restarted by Options.Restart.
func (p *Process) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// Alive reports whether the process has been started and has not ended permanently. During the
// pause before a restart it is alive.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return p.currentExecution() != nil
	}
}

// Signal sends sig to the process. It returns [os.ErrProcessDone] if the process has ended or
// could not be started. A worker ignores SIGINT, which a terminal sends to every process; use
// [Process.Interrupt] to cancel a worker. For a goroutine the error wraps
// [errors.ErrUnsupported].
func (p *Process) Signal(sig os.Signal) error {
	l := p.currentExecution()
	if l == nil || !p.Alive() {
		return os.ErrProcessDone
	}
	return l.signal(sig)
}

// Interrupt cancels the context of only this process, with the cause [ErrInterrupted]. After
// Interrupt, [Process.Terminate] or [Process.Kill], the process is not restarted, and its end is
// not a failure of the group. They return [os.ErrProcessDone] if the process has ended.
func (p *Process) Interrupt() error {
	p.asked.Store(true)
	if !p.Alive() {
		return os.ErrProcessDone
	}
	p.currentExecution().cancel(ErrInterrupted)
	return nil
}

// Terminate sends SIGTERM, which ends a worker that does not catch it. For a goroutine, it
// cancels the context. See [Process.Interrupt] for the consequences.
func (p *Process) Terminate() error { return p.terminate(syscall.SIGTERM) }

// Kill sends SIGKILL. A goroutine cannot be killed: its context is canceled and it is abandoned,
// so Wait returns an error that wraps [ErrAbandoned]. See [Process.Interrupt] for the
// consequences.
func (p *Process) Kill() error { return p.terminate(os.Kill) }

func (p *Process) terminate(sig os.Signal) error {
	p.asked.Store(true)
	if !p.Alive() {
		return os.ErrProcessDone
	}
	return p.currentExecution().terminate(sig, "")
}

// nextSeed returns the seed of the next execution's random numbers. It depends on the number of
// restarts so far.
func (p *Process) nextSeed() uint64 {
	return seed.Of(p.group.seed(), p.name, p.rank, p.Restarts())
}

func (p *Process) currentExecution() execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.execution
}

// startFirst starts the first execution, with the argument s. It returns an error if the process
// cannot be started and the failure is permanent; the caller must then publish it. Otherwise a
// goroutine starts later executions, publishes the result, and marks the argument as received or
// lost.
func (p *Process) startFirst(s *encodedArg) error {
	p.kept = s.kept
	p.settle = sync.OnceFunc(func() {
		if p.got.Load() {
			s.markReceived()
		} else {
			s.markLost(p.PID())
		}
	})
	first, err := p.startExecution(s)
	if err != nil && (p.group.opts.Restart.Max == 0 || !sys.Transient(err)) {
		return err
	}
	uncancel := context.AfterFunc(p.group.ctx, p.stopWithinGrace)
	go func() {
		defer uncancel()
		p.publishResult(p.runExecutions(first, err, s))
	}()
	watchOversubscription()
	return nil
}

// startExecution starts an execution by the start method of the group, and makes it the current
// one. It returns an error, and leaves the current one, if the process cannot be started.
func (p *Process) startExecution(s *encodedArg) (l execution, err error) {
	p.got.Store(false)
	switch p.group.opts.Start {
	case GoroutineStart:
		l = newRoutine(p, s)
	default:
		l, err = newChild(p, s)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.execution = l
	p.mu.Unlock()
	if p.group.ctx.Err() != nil { // stopWithinGrace may have canceled the previous execution
		l.cancel(context.Cause(p.group.ctx))
	}
	return l, nil
}

// runExecutions waits for execution l, restarts it as the policy allows, and returns nil if the
// last execution succeeded and otherwise its error, a [*ProcessError]. If the first execution
// could not be started, l is nil and failed is the reason.
func (p *Process) runExecutions(l execution, failed error, s *encodedArg) error {
	r := p.group.opts.Restart
	for row, attempts := 0, 0; ; {
		began := time.Now()
		var err error
		if failed != nil {
			err = p.newFailure(failed)
		} else {
			err = l.wait()
			p.group.awaitDeadline(err)
		}
		// An unused execution is replaced without counting as a restart.
		if c, ok := l.(*child); !ok || !c.endedUnused() || !p.mayRestart() {
			permanent := failed != nil && !sys.Transient(failed)
			if err == nil || permanent || !r.allows(attempts) || !p.mayRestart() {
				return err
			}
			row, attempts = r.failuresInRow(row, time.Since(began)), attempts+1
			pause := r.backoff(row)
			p.group.reportRestart(RestartEvent{Func: p.name, Rank: p.rank, Attempt: attempts, Pause: pause, Err: err})
			if !p.pauseRestart(pause) {
				return err
			}
			if failed == nil { // counted once, regardless of the number of attempts
				p.countRestart()
			}
		}
		l, failed = p.startExecution(s)
	}
}

// mayRestart reports whether neither p nor its group has been told to end.
func (p *Process) mayRestart() bool { return !p.asked.Load() && p.group.ctx.Err() == nil }

// pauseRestart waits for the duration pause before a restart, and reports whether p may still be
// restarted. It returns early if the group is canceled.
func (p *Process) pauseRestart(pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return p.mayRestart()
	case <-p.group.ctx.Done():
		return false
	}
}

// markArgReceived must be called when the current execution has decoded the argument and holds
// its blocks. This process then releases the argument, unless the process may be restarted: then
// it keeps the argument until the end.
func (p *Process) markArgReceived() {
	p.got.Store(true)
	if p.group.opts.Restart.Max == 0 {
		p.settle()
	}
}

// stopWithinGrace is called when the group is canceled. It cancels the process, and ends it if that
// has no effect.
func (p *Process) stopWithinGrace() {
	if l := p.currentExecution(); l != nil { // nil if the first start failed and is not repeated
		l.cancel(context.Cause(p.group.ctx))
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if p.endsWithin(p.group.opts.Grace) {
			return
		}
		p.forced.Store(true)
		if l := p.currentExecution(); l != nil {
			l.terminate(sig, fmt.Sprintf("it did not stop within %v after it was canceled", p.group.opts.Grace))
		}
	}
}

func (p *Process) endsWithin(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// publishResult sets the result of p, err or nil, closes p.ended, and tells the group. It must
// be called once, when p has ended permanently.
func (p *Process) publishResult(err error) {
	if p.settle != nil {
		p.settle()
	}
	p.err, p.kept = err, nil
	close(p.ended)
	p.group.removeProcess(p, err)
}

// newFailure returns a [*ProcessError] for a process that could not be started because of err. It
// returns nil if err is nil.
func (p *Process) newFailure(err error) error {
	if err == nil {
		return nil
	}
	return &ProcessError{Func: p.name, Rank: p.rank, Err: err, ExitCode: -1}
}
