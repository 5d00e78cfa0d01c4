package dist

import "context"

// A Work is a call that goes on while its caller does something else: torch's Work, which
// async_op=True returns.
type Work struct {
	done   chan struct{}
	source int
	err    error
}

// Wait waits until the call has ended and returns its error, as often as it is called. If ctx ends
// first, its error is returned and the call goes on: what ends a call is the context with which it
// was made.
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

// Source returns from which rank a Recv has received, once it has ended without an error, and -1
// otherwise.
func (w *Work) Source() int {
	select {
	case <-w.done:
		return w.source
	default:
		return -1
	}
}

// Async begins calls of all ranks and returns at once. call makes them on the Group that it is
// given, in the order in which all ranks make them; several are one after the other, and nothing
// comes between them. Its error is that of the Work. Where ctx ends before they have their turn,
// all calls of the group end.
//
//	work := g.Async(ctx, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, grads) })
//	loss := forward(next)
//	err := work.Wait(ctx)
//
// Calls of all ranks happen in the order in which they were made, by Async and by g itself. Until
// the Work has ended nobody uses its tensors, and context and Group stay open. A call that fails
// breaks the group, so those after it fail too. What goes from rank to rank waits for no call: see
// [Group.Isend] and [Group.Irecv].
func (g *Group) Async(ctx context.Context, call func(g *Group) error) *Work {
	w := newWork()
	if err := g.usable("call"); err != nil {
		w.end(err)
		return w
	}
	at := g.line.stand()
	go func() {
		g.await(ctx, at)
		w.end(call(&Group{member: g.member, seated: true})) // before the next one can
		at.leave()
	}()
	return w
}

func newWork() *Work { return &Work{done: make(chan struct{}), source: -1} }

func (w *Work) end(err error) {
	w.err = err
	close(w.done)
}
