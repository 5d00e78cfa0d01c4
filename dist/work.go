package dist

import (
	"context"

	"github.com/shoal-mp/shoal/tensor"
)

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

// An Async has the calls of a Group that do not wait for their end.
//
// Calls of all ranks together happen in the order in which they were made, those of the Group
// itself with them, one after the other. Sends to one rank happen in their order, and receives get
// what matches them in theirs; they wait for nothing else. Until the Work has ended nobody uses its
// tensors, and context and Group stay open. One that fails breaks the group, so those after it fail
// too.
type Async struct{ g *Group }

// Async returns the calls of g that do not wait:
//
//	work := g.Async().AllReduce(ctx, dist.Sum, grads)
//	loss := forward(next)
//	err := work.Wait(ctx)
func (g *Group) Async() Async { return Async{g} }

func newWork() *Work { return &Work{done: make(chan struct{}), source: -1} }

func (w *Work) end(err error) {
	w.err = err
	close(w.done)
}

// start makes a call at its place in the line, which is taken before start returns.
func (a Async) start(ctx context.Context, call func(g *Group) error) *Work {
	w := newWork()
	if err := a.g.usable("call"); err != nil {
		w.end(err)
		return w
	}
	at := a.g.line.stand()
	go func() {
		a.g.await(ctx, at)
		err := call(&Group{member: a.g.member, seated: true})
		w.end(err) // before the next one can
		at.leave()
	}()
	return w
}

// Barrier is Group.Barrier.
func (a Async) Barrier(ctx context.Context) *Work {
	return a.start(ctx, func(g *Group) error { return g.Barrier(ctx) })
}

// Broadcast is Group.Broadcast.
func (a Async) Broadcast(ctx context.Context, root int, ts ...*tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.Broadcast(ctx, root, ts...) })
}

// AllReduce is Group.AllReduce.
func (a Async) AllReduce(ctx context.Context, op Op, ts ...*tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.AllReduce(ctx, op, ts...) })
}

// Reduce is Group.Reduce.
func (a Async) Reduce(ctx context.Context, root int, op Op, ts ...*tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.Reduce(ctx, root, op, ts...) })
}

// AllGather is Group.AllGather.
func (a Async) AllGather(ctx context.Context, dst, src *tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.AllGather(ctx, dst, src) })
}

// Gather is Group.Gather.
func (a Async) Gather(ctx context.Context, root int, dst, src *tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.Gather(ctx, root, dst, src) })
}

// Scatter is Group.Scatter.
func (a Async) Scatter(ctx context.Context, root int, dst, src *tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.Scatter(ctx, root, dst, src) })
}

// AllToAll is Group.AllToAll.
func (a Async) AllToAll(ctx context.Context, dst, src *tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.AllToAll(ctx, dst, src) })
}

// ReduceScatter is Group.ReduceScatter.
func (a Async) ReduceScatter(ctx context.Context, op Op, dst, src *tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.ReduceScatter(ctx, op, dst, src) })
}

// AllGatherTensors is Group.AllGatherTensors.
func (a Async) AllGatherTensors(ctx context.Context, dst []*tensor.Tensor, src *tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.AllGatherTensors(ctx, dst, src) })
}

// AllToAllTensors is Group.AllToAllTensors.
func (a Async) AllToAllTensors(ctx context.Context, dst, src []*tensor.Tensor) *Work {
	return a.start(ctx, func(g *Group) error { return g.AllToAllTensors(ctx, dst, src) })
}

// AllToAllSplits is Group.AllToAllSplits.
func (a Async) AllToAllSplits(ctx context.Context, dst, src *tensor.Tensor, dstSplits, srcSplits []int) *Work {
	return a.start(ctx, func(g *Group) error { return g.AllToAllSplits(ctx, dst, src, dstSplits, srcSplits) })
}
