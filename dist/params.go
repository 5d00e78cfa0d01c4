package dist

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// BroadcastParams gives the parameters of all ranks the values that those of rank root have, so that replicas begin as equals.
func (g *Group) BroadcastParams(ctx context.Context, root int, params iter.Seq[*autograd.Param]) error {
	var values []*tensor.Tensor
	for p := range params {
		values = append(values, p.T)
	}
	return g.Broadcast(ctx, root, values...)
}

// AverageGrads replaces the gradients of parameters by their means over all ranks. If the ranks computed them on equal parts of a
// batch, from losses that are means, they are those of the whole batch. A gradient that does not exist yet counts as zeros; frozen
// parameters are left out. Whoever then takes the same step with the same optimizer has the same parameters, to the last bit.
func (g *Group) AverageGrads(ctx context.Context, params iter.Seq[*autograd.Param]) error {
	return g.AllReduce(ctx, Mean, gradients(params)...)
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
