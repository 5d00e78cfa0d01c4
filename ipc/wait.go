package ipc

import (
	"context"
	"errors"
	"sync/atomic"
)

// A Poller is what can be waited for among others: a Receiver, a Queue, a side of a pipe, a
// Conn, a Listener, a shoal.Process, a shoal.Group, and by PollFunc anything else.
type Poller interface {
	// Poll waits until there is something to be had, or there never will be. It returns nil for a
	// thing that is ready, even if ctx has ended.
	Poll(ctx context.Context) error
}

// A PollFunc is a Poller. It looks at its thing before it looks at ctx, so that Wait reports it
// beside others:
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

// Wait waits until at least one of the things is ready, and returns the indexes of all that are, in
// ascending order. Others may be quicker to take what there is. A thing whose Poll fails, because
// it is closed, counts as ready: the next operation on it says why. The error is that of ctx; if
// ctx has ended already, Wait returns what is ready now.
func Wait(ctx context.Context, things ...Poller) (ready []int, err error) {
	if len(things) == 0 {
		return nil, nil
	}
	at, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	polled := make([]chan error, len(things))
	for i, t := range things {
		polled[i] = make(chan error, 1)
		go func() {
			err := t.Poll(at)
			if !gaveUp(at, err) {
				cancel(errOthers)
			}
			polled[i] <- err
		}()
	}
	<-at.Done()
	for i, t := range things {
		err := <-polled[i]
		if gaveUp(at, err) { // it may have become ready at the same time, and the end of its context was seen first
			err = t.Poll(&glance{Context: context.WithoutCancel(at), of: at})
		}
		if !gaveUp(at, err) {
			ready = append(ready, i)
		}
	}
	if len(ready) == 0 {
		return nil, contextError(ctx, "wait", ErrEmpty)
	}
	return ready, nil
}

// errOthers is why a thing is not waited for any more.
var errOthers = errors.New("ipc: another is ready")

// gaveUp reports whether err is of a Poll that ended because its context did.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// A glance is a context that ends when somebody begins to wait for its end. So a Poll under it
// returns at once, and one that looks at its thing first, in whatever way, sees that it is ready.
type glance struct {
	context.Context // the values
	of              context.Context
	waited          atomic.Bool
}

// Done returns a channel that is closed.
func (g *glance) Done() <-chan struct{} {
	g.waited.Store(true)
	return g.of.Done()
}

// Err returns nil until Done was called.
func (g *glance) Err() error {
	if g.waited.Load() {
		return g.of.Err()
	}
	return nil
}
