package dist

import (
	"context"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/goexit"
)

// A Work is a call that goes on in the background: torch's Work, which async_op=True returns.
type Work struct {
	done   chan struct{}
	source int
	err    error
}

// Wait waits until the call has ended and returns its error. It may be called several times. If ctx
// ends first, Wait returns the error of ctx, and the call goes on: only the context of the call
// itself ends it.
func (w *Work) Wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	default:
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done returns a channel that is closed when the call has ended.
func (w *Work) Done() <-chan struct{} { return w.done }

// Source returns the rank of the sender after an Irecv that ended without an error, and -1
// otherwise.
func (w *Work) Source() int {
	select {
	case <-w.done:
		return w.source
	default:
		return -1
	}
}

// Async begins calls of all ranks and returns at once. The function call makes one call or several
// on the Group that it is given, and no other call comes between them. Its error is the error of
// the Work. If ctx ends before the calls begin, the group is broken.
//
//	work := g.Async(ctx, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, grads) })
//	loss := forward(next)
//	err := work.Wait(ctx)
//
// All ranks must begin the same calls in the same order, by Async and on g itself. Until the Work
// has ended, do not use its tensors, and keep ctx and the Group open. A call that fails breaks the
// group, and later calls fail as well. For messages from rank to rank see [Group.Isend] and
// [Group.Irecv].
func (g *Group) Async(ctx context.Context, call func(g *Group) error) *Work {
	w := newWork()
	if err := g.checkUsable("call"); err != nil {
		w.complete(err)
		return w
	}
	at := g.line.takeTicket()
	go func() {
		g.acquireLock(ctx, at)
		defer at.release() // after this one is complete
		w.completeWith(func() error { return call(&Group{member: g.member, seated: true}) })
	}()
	return w
}

func newWork() *Work { return &Work{done: make(chan struct{}), source: -1} }

// completeWith calls f and completes the work with its error. A panic of f, such as a use of a
// closed tensor or a type's MarshalBinary, becomes an error that wraps [shoal.ErrPanic]. If f
// calls runtime.Goexit, the goroutine ends.
func (w *Work) completeWith(f func() error) {
	goexit.Call(func() error { return goexit.Recover(shoal.ErrPanic, f) }, w.complete)
}

func (w *Work) complete(err error) {
	w.err = err
	close(w.done)
}
