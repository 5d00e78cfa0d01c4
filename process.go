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

// A Process is a process that this one has started, or a goroutine that stands for one. Several
// goroutines may call its methods.
type Process struct {
	group *Group
	name  string
	rank  int

	ended chan struct{} // closed when the process has ended for good
	err   error         // set before ended is closed

	origin trail       // the calls that started it
	settle func()      // says once what became of the argument
	got    atomic.Bool // the latest life holds the argument, or did
	kept   []any       // parts of the argument that the garbage collector would close, kept until the process has ended
	asked  atomic.Bool // one of its methods asked for its end, so the end is no failure of the group
	forced atomic.Bool // its group ends it, so the signal of its end is none of the failure's causes

	mu       sync.Mutex
	life     life // the latest life; nil if it could not be started
	restarts int
}

// A life of a Process is one child process, or one goroutine. A Process that is restarted has
// several.
type life interface {
	pid() int
	cancel(cause error)                  // tells the function to stop, without waiting
	signal(sig os.Signal) error          // any signal
	end(sig os.Signal, why string) error // a signal that is to end it; why goes into the error if it is not empty
	wait() error                         // waits for the end; nil or a *ProcessError; called once
}

// Name returns the name of the process's function.
func (p *Process) Name() string { return p.name }

// Rank returns the number of the process among those of its function in its group.
func (p *Process) Rank() int { return p.rank }

// PID returns the process id, and after a restart the new one. It is 0 if the process could not be
// started. A goroutine has the id of this process.
func (p *Process) PID() int {
	if l := p.now(); l != nil {
		return l.pid()
	}
	return 0
}

// Restarts returns how often the process was started again under Options.Restart.
func (p *Process) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// Alive reports whether the process has been started and has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return p.now() != nil
	}
}

// Signal sends sig to the process. The error is os.ErrProcessDone if the process has ended. A
// worker ignores SIGINT, which a terminal sends to every process; Interrupt cancels a worker. For a
// goroutine any signal is errors.ErrUnsupported.
func (p *Process) Signal(sig os.Signal) error {
	l := p.now()
	if l == nil || !p.Alive() {
		return os.ErrProcessDone
	}
	return l.signal(sig)
}

// Interrupt cancels the context of this process alone, with the cause ErrInterrupted. After
// Interrupt, Terminate or Kill the end of the process is what its starter wanted: the process is
// not started again, and its end is no failure of the group.
func (p *Process) Interrupt() error {
	p.asked.Store(true)
	if !p.Alive() {
		return os.ErrProcessDone
	}
	p.now().cancel(ErrInterrupted)
	return nil
}

// Terminate sends SIGTERM, which ends a worker that does not catch it. The context of a goroutine
// is cancelled instead.
func (p *Process) Terminate() error { return p.end(syscall.SIGTERM) }

// Kill ends the process at once, by SIGKILL. A goroutine cannot be ended: its context is cancelled
// and it is left alone, so that Wait returns an error that wraps ErrAbandoned.
func (p *Process) Kill() error { return p.end(os.Kill) }

func (p *Process) end(sig os.Signal) error {
	p.asked.Store(true)
	if !p.Alive() {
		return os.ErrProcessDone
	}
	return p.now().end(sig, "")
}

// seed returns the seed of the random numbers of the next life.
func (p *Process) seed() uint64 {
	return seed.Of(p.group.seed(), p.name, p.rank, p.Restarts())
}

func (p *Process) now() life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// start begins the first life. A goroutine begins the later lives, and handles the end.
func (p *Process) start(s *encodedArg) error {
	p.kept = s.kept
	p.settle = sync.OnceFunc(func() {
		if p.got.Load() {
			s.done()
		} else {
			s.lost(p.PID())
		}
	})
	first, err := p.begin(s)
	if err != nil && (p.group.opts.Restart.Max == 0 || !sys.Transient(err)) {
		return err
	}
	uncancel := context.AfterFunc(p.group.ctx, p.stop)
	go func() {
		defer uncancel()
		p.finish(p.live(first, err, s))
	}()
	watchOversubscription()
	return nil
}

// begin begins a life.
func (p *Process) begin(s *encodedArg) (l life, err error) {
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
	p.life = l
	p.mu.Unlock()
	if p.group.ctx.Err() != nil { // stop may have told the life before this one
		l.cancel(context.Cause(p.group.ctx))
	}
	return l, nil
}

// live returns the error of the last life. failed is why there is no first life, or nil.
func (p *Process) live(l life, failed error, s *encodedArg) error {
	r := p.group.opts.Restart
	for row, attempts := 0, 0; ; {
		began := time.Now()
		var err error
		if failed != nil {
			err = p.failure(failed)
		} else {
			err = l.wait()
			p.group.awaitDeadline(err)
		}
		if c, ok := l.(*child); !ok || !c.unused() || !p.wanted() { // else another life takes its place
			permanent := failed != nil && !sys.Transient(failed)
			if err == nil || permanent || !r.allows(attempts) || !p.wanted() {
				return err
			}
			row, attempts = r.row(row, time.Since(began)), attempts+1
			pause := r.pause(row)
			p.group.reportRestart(RestartEvent{Func: p.name, Rank: p.rank, Attempt: attempts, Pause: pause, Err: err})
			if !p.rest(pause) {
				return err
			}
			if failed == nil { // the restart is counted once, however many attempts it takes
				p.countRestart()
			}
		}
		l, failed = p.begin(s)
	}
}

// wanted reports whether no method has asked for the end of p.
func (p *Process) wanted() bool { return !p.asked.Load() && p.group.ctx.Err() == nil }

// rest waits before a restart, and reports whether p is started again.
func (p *Process) rest(pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return p.wanted()
	case <-p.group.ctx.Done():
		return false
	}
}

// arrived is called when the process holds the argument. A group that may have to start another
// process keeps the argument.
func (p *Process) arrived() {
	p.got.Store(true)
	if p.group.opts.Restart.Max == 0 {
		p.settle()
	}
}

// stop runs when the group is cancelled. It tells the process to stop, and if that does not help,
// ends it.
func (p *Process) stop() {
	if l := p.now(); l != nil { // else its first start has failed, and is not tried again
		l.cancel(context.Cause(p.group.ctx))
	}
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if p.endsWithin(p.group.opts.Grace) {
			return
		}
		p.forced.Store(true)
		if l := p.now(); l != nil {
			l.end(sig, fmt.Sprintf("it had not stopped %v after it was told to", p.group.opts.Grace))
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

// finish publishes the result.
func (p *Process) finish(err error) {
	if p.settle != nil {
		p.settle()
	}
	p.err, p.kept = err, nil
	close(p.ended)
	p.group.leave(p, err)
}

// failure wraps the reason why the process could not be started.
func (p *Process) failure(err error) error {
	if err == nil {
		return nil
	}
	return &ProcessError{Func: p.name, Rank: p.rank, Err: err, ExitCode: -1}
}
