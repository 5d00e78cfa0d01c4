package dist_test

import (
	"maps"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Whatever the size of the buckets, the gradients are those of one process with the whole batch,
// and the same bits in all ranks.
func TestDistributedDataParallel_BucketsOfAnySize(t *testing.T) {
	const size, batch = 3, 12
	for _, bytes := range []int{0, 1, 100, 1 << 20} {
		groups, ctx := handles(t, size), testutil.Context(t)
		nets := make([]*net, size)
		all(t, together(groups, func(g *dist.Group) error {
			n := newNet(7)
			nets[g.Rank()] = n
			d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{BucketBytes: bytes})
			if err != nil {
				return err
			}
			for i := range 3 {
				zeroGrad(n)
				part := samples(uint64(i), batch)
				for k, s := range part {
					part[k] = s.Narrow(0, g.Rank()*batch/size, batch/size)
				}
				if err := d.Backward(ctx, n.loss(nil, part)); err != nil {
					return err
				}
				step(n)
			}
			return nil
		}))
		equal(t, nets[0], alone(7, 3, batch))
		for _, n := range nets[1:] {
			for name, p := range nn.Named(nets[0]) {
				want(t, "the same bits: "+name, maps.Collect(nn.Named(n))[name].T, p.T)
			}
		}
	}
}

// Ranks whose losses reach different parameters make the same calls. What a loss does not reach
// counts as zeros.
func TestDistributedDataParallel_ParametersThatALossDoesNotReach(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	all(t, together(groups, func(g *dist.Group) error {
		n := newNet(7)
		d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{BucketBytes: 1})
		if err != nil {
			return err
		}
		loss := []*autograd.Var{nil, autograd.Sum(n.B1.Var()), autograd.Sum(n.W2.Var())}[g.Rank()]
		if err := d.Backward(ctx, loss); err != nil {
			return err
		}
		for name, p := range nn.Named(n) {
			mean := 1. / 3
			if name == "w1" || name == "b2" {
				mean = 0
			}
			want(t, name, p.Grad, tensor.Full(tensor.Float64, mean, p.T.Shape()...))
		}
		return nil
	}))
}
