package dist

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Buckets] Gradients are averaged while Backward computes others. Those of one dtype are put
// into buckets, in the reverse order of the parameters, which is about the order in which Backward
// completes them. A bucket is on its way as soon as all its gradients are complete and the buckets
// before it are on theirs. So all ranks make the same calls in the same order, in whatever order
// their gradients come. What Backward does not reach is averaged at its end.

// bucketBytes is the size from which a bucket is full, as PyTorch has it: 25 MiB. The first one is
// smaller, so that something is on its way soon.
const (
	bucketBytes      = 25 << 20
	firstBucketBytes = 1 << 20
)

// A bucket is parameters whose gradients are averaged in one call.
type bucket struct {
	params []*autograd.Param
	bytes  int
	late   int // gradients that are not complete
}

// buckets averages the gradients of one Backward.
type buckets struct {
	g      *Group
	ctx    context.Context
	all    []*bucket
	next   int // the first that is not on its way
	works  []*Work
	remove []func() // the hooks
}

// newBuckets waits for the gradients of params by hooks.
func newBuckets(ctx context.Context, g *Group, params iter.Seq[*autograd.Param], limit int) *buckets {
	b := &buckets{g: g, ctx: ctx}
	open := map[tensor.DType]*bucket{}
	own := slices.Collect(params)
	slices.Reverse(own)
	for _, p := range own {
		if p.Frozen {
			continue
		}
		dt := p.T.DType()
		at := open[dt]
		if at == nil {
			at = new(bucket)
			open[dt] = at
			b.all = append(b.all, at)
		}
		at.params, at.bytes, at.late = append(at.params, p), at.bytes+p.T.Nbytes(), at.late+1
		b.remove = append(b.remove, p.RegisterPostAccumulateGradHook(func(*autograd.Param) { b.come(at) }))
		full := cmp.Or(limit, bucketBytes)
		if at == b.all[0] {
			full = min(full, firstBucketBytes)
		}
		if at.bytes >= full {
			delete(open, dt)
		}
	}
	return b
}

// come notes that a gradient is complete, and sends the buckets that are full by that.
func (b *buckets) come(at *bucket) {
	at.late--
	for b.next < len(b.all) && b.all[b.next].late <= 0 {
		b.send()
	}
}

// send begins to average the next bucket.
func (b *buckets) send() {
	grads := gradients(slices.Values(b.all[b.next].params))
	b.next++
	b.works = append(b.works, b.g.Async(b.ctx, func(g *Group) error { return g.AllReduce(b.ctx, Mean, grads...) }))
}

// finish averages what is left, and waits for all.
func (b *buckets) finish() (err error) {
	b.forget()
	for b.next < len(b.all) {
		b.send()
	}
	if len(b.all) == 0 { // the ranks meet all the same
		err = b.g.AllReduce(b.ctx, Mean)
	}
	for _, w := range b.works {
		err = cmp.Or(err, w.wait())
	}
	return err
}

// forget removes the hooks.
func (b *buckets) forget() {
	for _, remove := range b.remove {
		remove()
	}
	b.remove = nil
}
