package ipc

import (
	"context"
	"errors"
)

// A Poller is what can be waited for among others: a Receiver, a Queue, a side of a pipe, a Connection, a Listener, and by
// PollFunc anything else.
type Poller interface {
	// Poll waits until there is something to be had, or never will be.
	Poll(ctx context.Context) error
}

// A PollFunc is a Poller. For a process it is
//
//	ipc.PollFunc(func(ctx context.Context) error { p.Wait(ctx); return context.Cause(ctx) })
type PollFunc func(ctx context.Context) error

// Poll calls f.
func (f PollFunc) Poll(ctx context.Context) error { return f(ctx) }

// Wait waits until at least one of the things is ready, and returns the indexes of those that are, in ascending order. Others
// may be quicker to take what there is. A thing whose Poll fails, because it is closed, counts as ready: what is done with it next
// says why. The error is that of ctx.
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
			polled[i] <- err
			if !errors.Is(err, errOthers) && context.Cause(ctx) == nil {
				cancel(errOthers)
			}
		}()
	}
	<-at.Done()
	for i := range things {
		if err := <-polled[i]; err == nil || context.Cause(at) == errOthers && !errors.Is(err, errOthers) {
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
