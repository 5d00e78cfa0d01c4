package shoal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A routine is an execution of a Process on a goroutine of this process. It implements
// [execution].
type routine struct {
	p        *Process
	undo     context.CancelCauseFunc
	stop     context.CancelFunc
	ended    chan struct{} // closed when err is set
	conclude sync.Once
	err      error
}

// newRoutine starts the job of p with the argument s on a new goroutine. It decodes the argument
// before it returns, because an abandoned goroutine must not use the argument later.
func newRoutine(p *Process, s *encodedArg) *routine {
	r := &routine{p: p, ended: make(chan struct{})}
	var ctx context.Context
	ctx, r.undo = context.WithCancelCause(seed.With(context.Background(), seed.New(p.nextSeed())))
	ctx, r.stop = sys.DeadlineOf(p.group.ctx).Context(ctx)
	go r.runJob(ctx, r.prepareJob(s))
	return r
}

// prepareJob decodes the argument s and returns a function that does the job and returns its
// outcome, or a function that returns the reason why it cannot be done.
func (r *routine) prepareJob(s *encodedArg) (do func(ctx context.Context) outcome) {
	fail := func(o outcome) func(context.Context) outcome { return func(context.Context) outcome { return o } }
	defer func() {
		if v := recover(); v != nil {
			do = fail(panicOutcome(v, debug.Stack()))
		}
	}()
	f, ok := functions.Get(r.p.name)
	if !ok {
		return fail(outcome{Kind: kindNotRegistered})
	}
	run, err := f.prepareTask(s.parcel)
	if err != nil {
		return fail(outcome{Kind: kindArgument, Err: err})
	}
	r.p.markArgReceived()
	return func(ctx context.Context) outcome { return outcome{Kind: kindReturned, Err: run(ctx, r.p.rank)} }
}

// runJob calls do and sets its outcome. If do panics, the outcome is the panic. The deferred
// function runs even if the job calls runtime.Goexit.
func (r *routine) runJob(ctx context.Context, do func(ctx context.Context) outcome) {
	o := goexited
	defer func() {
		if v := recover(); v != nil {
			o = panicOutcome(v, debug.Stack())
		}
		r.undo(nil)
		r.stop()
		r.setOutcome(o)
	}()
	o = do(ctx)
}

// setOutcome sets the error of the routine to the error of an outcome, nil if it did not fail,
// and wakes wait. Only the first call has an effect.
func (r *routine) setOutcome(o outcome) {
	r.conclude.Do(func() {
		if o.isFailed() {
			code := exitFailed
			if o.Kind == kindPanicked {
				code = exitPanicked
			}
			r.err = &ProcessError{Func: r.p.name, Rank: r.p.rank, PID: r.pid(), Err: o.outcomeError(), Stack: o.Stack,
				ExitCode: code}
		}
		close(r.ended)
	})
}

func (r *routine) pid() int { return os.Getpid() }

func (r *routine) cancel(cause error) { r.undo(&cancelled{cause}) }

func (r *routine) signal(sig os.Signal) error {
	return fmt.Errorf("signal %v to a goroutine: %w", sig, errors.ErrUnsupported)
}

// terminate cancels the context. A goroutine cannot be killed, so SIGKILL only makes wait return
// an error that wraps [ErrAbandoned] and why. It always returns nil.
func (r *routine) terminate(sig os.Signal, why string) error {
	r.cancel(ErrInterrupted)
	if sig != os.Kill {
		return nil
	}
	text := "goroutine abandoned, still running"
	if why != "" {
		text += ": " + why
	}
	r.setOutcome(outcome{Kind: kindReturned, Err: newDescribed(text, ErrAbandoned)})
	return nil
}

func (r *routine) wait() error {
	<-r.ended
	return r.err
}
