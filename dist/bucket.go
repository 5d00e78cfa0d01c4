package dist

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Buckets] Gradients are averaged while Backward still computes others. Gradients of one
// dtype are grouped into buckets in the reverse order of the parameters, since Backward completes
// them roughly in that order. The all-reduce of a bucket starts as soon as all its gradients are
// complete and all earlier buckets have started. All ranks therefore make the same calls in the
// same order, even if their gradients complete in different orders. Gradients that Backward does
// not reach are averaged when it ends.

// bucketBytes is the default size at which a bucket is full: PyTorch's 25 MiB. The first bucket is
// smaller, so that communication starts early.
const (
	bucketBytes      = 25 << 20
	firstBucketBytes = 1 << 20
)

// A bucket is a set of parameters with gradients that are averaged in one call.
type bucket struct {
	params []*autograd.Param
	bytes  int
	late   int // number of gradients that are not complete yet
}

// buckets averages the gradients of one Backward.
type buckets struct {
	g      *Group
	ctx    context.Context
	all    []*bucket
	next   int // index of the first bucket that has not been sent
	works  []*Work
	remove []func() // functions that remove the hooks
}

// newBuckets assigns the parameters that are not frozen to buckets of limit bytes (0:
// bucketBytes) and hooks their gradients, so that a Backward sends each bucket when it is
// complete. The caller must call flush after Backward, or removeHooks to give up.
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
		b.remove = append(b.remove, p.RegisterPostAccumulateGradHook(func(*autograd.Param) { b.recordGradient(at) }))
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

// recordGradient counts a completed gradient of the bucket at, and sends all leading buckets
// that are now complete.
func (b *buckets) recordGradient(at *bucket) {
	at.late--
	for b.next < len(b.all) && b.all[b.next].late <= 0 {
		b.sendBucket()
	}
}

// sendBucket starts the all-reduce of the next bucket.
func (b *buckets) sendBucket() {
	grads := collectGrads(slices.Values(b.all[b.next].params))
	b.next++
	b.works = append(b.works, b.g.Async(b.ctx, func(g *Group) error { return g.AllReduce(b.ctx, Mean, grads...) }))
}

// flush removes the hooks, sends the remaining buckets and waits for all of them. It returns the
// first error of their all-reduces.
func (b *buckets) flush() (err error) {
	b.removeHooks()
	for b.next < len(b.all) {
		b.sendBucket()
	}
	if len(b.all) == 0 { // a rank without gradients must still take part
		err = b.g.AllReduce(b.ctx, Mean)
	}
	for _, w := range b.works {
		err = cmp.Or(err, w.waitDone())
	}
	return err
}

// removeHooks removes the hooks. It is idempotent.
func (b *buckets) removeHooks() {
	for _, remove := range b.remove {
		remove()
	}
	b.remove = nil
}
