package dist

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// BroadcastParams gives the parameters of all ranks the values that those of rank root have, so
// that replicas begin as equals.
func (g *Group) BroadcastParams(ctx context.Context, root int, params iter.Seq[*autograd.Param]) error {
	var values []*tensor.Tensor
	for p := range params {
		values = append(values, p.T)
	}
	return byDType(values, func(ts []*tensor.Tensor) error { return g.Broadcast(ctx, root, ts...) })
}

// AverageGrads replaces the gradients of parameters by their means over all ranks. If the ranks
// computed them on equal parts of a batch, from losses that are means, they are those of the whole
// batch. A gradient that does not exist yet counts as zeros; frozen parameters are left out; of
// several dtypes each has a call of its own, and where all are frozen the ranks only meet. Ranks
// that then take the same step with the same optimizer have the same parameters, to the last bit.
func (g *Group) AverageGrads(ctx context.Context, params iter.Seq[*autograd.Param]) error {
	return byDType(gradients(params), func(ts []*tensor.Tensor) error { return g.AllReduce(ctx, Mean, ts...) })
}

// byDType makes one call for the tensors of each dtype, in the order in which the dtypes first
// occur, which is the same on all ranks. Without any tensors it makes one call of none, so that the
// ranks meet all the same.
func byDType(ts []*tensor.Tensor, call func(ts []*tensor.Tensor) error) error {
	for {
		var now, later []*tensor.Tensor
		for _, t := range ts {
			if t.DType() == ts[0].DType() {
				now = append(now, t)
			} else {
				later = append(later, t)
			}
		}
		if err := call(now); err != nil || len(later) == 0 {
			return err
		}
		ts = later
	}
}

// gradients returns the gradients of what is not frozen, and makes those that are missing.
func gradients(params iter.Seq[*autograd.Param]) (all []*tensor.Tensor) {
	for p := range params {
		if p.Frozen {
			continue
		}
		if p.Grad == nil {
			p.Grad = p.T.NewZeros(p.T.DType(), p.T.Shape()...)
		}
		all = append(all, p.Grad)
	}
	return all
}
