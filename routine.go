package shoal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
)

// A routine is a life of a Process on a goroutine of this one.
type routine struct {
	p        *Process
	undo     context.CancelCauseFunc
	ended    chan struct{} // closed when err is set
	conclude sync.Once
	err      error
}

func newRoutine(p *Process, s *shipment) *routine {
	r := &routine{p: p, ended: make(chan struct{})}
	var ctx context.Context
	ctx, r.undo = context.WithCancelCause(context.Background())
	go r.run(ctx, s)
	return r
}

// run does the job. The deferred call is reached however the function ends, by runtime.Goexit, too.
func (r *routine) run(ctx context.Context, s *shipment) {
	o := goexited
	defer func() {
		if v := recover(); v != nil {
			o = panicked(v, debug.Stack())
		}
		r.undo(nil)
		r.tell(o)
	}()
	o = r.perform(ctx, s)
}

func (r *routine) perform(ctx context.Context, s *shipment) outcome {
	f, ok := functions.get(r.p.name)
	if !ok {
		return outcome{Kind: kindNotRegistered}
	}
	run, err := f.prepare(s.parcel)
	if err != nil {
		return outcome{Kind: kindArgument, Err: err}
	}
	r.p.arrived()
	return outcome{Kind: kindReturned, Err: run(ctx, r.p.rank)}
}

// tell makes the error of an outcome.
func (r *routine) tell(o outcome) {
	r.conclude.Do(func() {
		if o.failed() {
			code := exitFailed
			if o.Kind == kindPanicked {
				code = exitPanicked
			}
			r.err = &ProcessError{Func: r.p.name, Rank: r.p.rank, PID: r.pid(), Err: o.err(), Stack: o.Stack, ExitCode: code}
		}
		close(r.ended)
	})
}

func (r *routine) pid() int { return os.Getpid() }

func (r *routine) cancel(cause error) { r.undo(&cancelled{cause}) }

func (r *routine) signal(sig os.Signal) error {
	return fmt.Errorf("send %v to a goroutine: %w", sig, errors.ErrUnsupported)
}

// end cancels. There is no way to end a goroutine, so that the last signal only ends the waiting for it.
func (r *routine) end(sig os.Signal, why string) error {
	r.cancel(ErrInterrupted)
	if sig != os.Kill {
		return nil
	}
	text := "goroutine left alone"
	if why != "" {
		text += ": " + why
	}
	r.tell(outcome{Kind: kindReturned, Err: describe(text, ErrAbandoned)})
	return nil
}

func (r *routine) wait() error {
	<-r.ended
	return r.err
}
