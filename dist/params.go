package dist

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// BroadcastParams copies the parameters of rank root, frozen ones included, to all ranks, so
// that all replicas start with equal values. All ranks must call it with parameters of the same
// shapes and dtypes.
func (g *Group) BroadcastParams(ctx context.Context, root int, params iter.Seq[*autograd.Param]) error {
	var values []*tensor.Tensor
	for p := range params {
		values = append(values, p.T)
	}
	return forEachDType(values, func(ts []*tensor.Tensor) error { return g.Broadcast(ctx, root, ts...) })
}

// AverageGrads replaces the gradients of the parameters by their means over all ranks. All ranks
// must call it. If each rank computed the mean loss of an equal part of a batch, the results are
// the gradients of the whole batch. A missing gradient counts as zeros. Frozen parameters are
// skipped. The results are bitwise identical in all ranks, so ranks with equal optimizers keep
// equal parameters.
func (g *Group) AverageGrads(ctx context.Context, params iter.Seq[*autograd.Param]) error {
	return forEachDType(collectGrads(params), func(ts []*tensor.Tensor) error { return g.AllReduce(ctx, Mean, ts...) })
}

// forEachDType makes one call for the tensors of each dtype, in the order of their first
// occurrence. This order is the same in all ranks. Without tensors it makes one call with none, so
// that this rank still takes part.
func forEachDType(ts []*tensor.Tensor, call func(ts []*tensor.Tensor) error) error {
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

// collectGrads returns the gradients of the parameters that are not frozen, and allocates missing
// ones as zeros.
func collectGrads(params iter.Seq[*autograd.Param]) (all []*tensor.Tensor) {
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
