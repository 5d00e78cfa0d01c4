package ipc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/goexit"
)

// A Poller can be passed to [Wait]. It is implemented by [Receiver], [Queue], [PipeEnd], [Conn],
// [Listener], shoal.Process, shoal.Group, and for anything else by [PollFunc].
type Poller interface {
	// Poll blocks until the next operation would not block, because a value is available or none
	// can follow. It must return nil if the Poller is ready, even if ctx is already done.
	Poll(ctx context.Context) error
}

// A PollFunc is a function that implements [Poller]. It must check for readiness before it checks
// ctx, so that [Wait] reports it along with others:
//
//	ipc.PollFunc(func(ctx context.Context) error {
//		if done() {
//			return nil
//		}
//		select {
//		case <-changed:
//			return nil
//		case <-ctx.Done():
//			return context.Cause(ctx)
//		}
//	})
type PollFunc func(ctx context.Context) error

// Poll calls f.
func (f PollFunc) Poll(ctx context.Context) error { return f(ctx) }

// Wait blocks until at least one of things is ready, and returns the indices of all that are
// ready, in ascending order. Another receiver may still take a value first. A thing counts as
// ready if its Poll fails, for example because it is closed; the next operation on it returns
// the error. If ctx is already done, Wait returns the things that are ready now. If there are
// none, it returns the error of ctx, with [ErrEmpty] if the deadline has expired. Without
// things, Wait returns nil and nil immediately.
//
// If a Poll panics or calls runtime.Goexit, Wait does the same in the goroutine of its caller,
// after the other things have been polled.
func Wait(ctx context.Context, things ...Poller) (ready []int, err error) {
	if len(things) == 0 {
		return nil, nil
	}
	at, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	polled := make([]chan pollResult, len(things))
	for i, t := range things {
		polled[i] = make(chan pollResult, 1)
		go func() {
			pollThing(at, t, func(r pollResult) {
				if !isContextEnd(at, r.err) {
					cancel(errOthers)
				}
				polled[i] <- r
			})
		}()
	}
	<-at.Done()
	results := make([]pollResult, len(things))
	for i, r := range polled {
		results[i] = <-r
	}
	for i, t := range things {
		err := results[i].pollError()
		if isContextEnd(at, err) { // it may have become ready just before its context ended
			err = t.Poll(&pollContext{Context: context.WithoutCancel(at), of: at})
		}
		if !isContextEnd(at, err) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return nil, contextError(ctx, "wait", ErrEmpty)
	}
	return ready, nil
}

// A pollResult is the outcome of a Poll on a goroutine of [Wait].
type pollResult struct {
	err      error
	panicked any    // value of a panic
	stack    []byte // of the panic
}

// pollThing polls a thing and passes the outcome to done, which is called exactly once. The Poll
// method may be the caller's, so it may panic or call runtime.Goexit, which ends this goroutine.
func pollThing(ctx context.Context, t Poller, done func(pollResult)) {
	r := pollResult{err: goexit.Err}
	defer func() {
		if p := recover(); p != nil {
			r = pollResult{errPanicked, p, debug.Stack()}
		}
		done(r)
	}()
	r.err = t.Poll(ctx)
}

var errPanicked = errors.New("ipc: Poll panicked")

// pollError returns the error of the Poll. If the Poll panicked, it panics with the same value
// and stack in its text; if the Poll called runtime.Goexit, so does pollError. It must therefore
// be called in the goroutine of the caller of [Wait].
func (r pollResult) pollError() error {
	switch {
	case r.panicked != nil:
		panic(fmt.Sprintf("ipc: Wait: Poll panicked: %v\n\n%s", r.panicked, r.stack))
	case r.err == goexit.Err:
		runtime.Goexit()
	}
	return r.err
}

// errOthers is the cancellation cause for the remaining things once one is ready.
var errOthers = errors.New("ipc: another source is ready")

// isContextEnd reports whether ctx is done and err wraps its error or its cause: the Poll that
// returned err ended because of ctx, not because it was ready.
func isContextEnd(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// A pollContext is a context for a non-blocking Poll. It is not done until Done is called, so a
// Poll that checks for readiness first returns its result, and a Poll that would block returns
// immediately.
type pollContext struct {
	context.Context // for the values
	of              context.Context
	waited          atomic.Bool
}

// Done returns the channel of the context that has ended, which is closed. From now on, Err
// returns an error.
func (g *pollContext) Done() <-chan struct{} {
	g.waited.Store(true)
	return g.of.Done()
}

// Err returns nil until Done was called, and then the error of the context that has ended.
func (g *pollContext) Err() error {
	if g.waited.Load() {
		return g.of.Err()
	}
	return nil
}
