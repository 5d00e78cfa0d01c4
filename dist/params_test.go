package dist_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// mixed returns parameters of two dtypes in turns, all of a value, with gradients of it.
func mixed(v float64, frozen bool) (all []*autograd.Param) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float32, tensor.BFloat16} {
		p := &autograd.Param{T: tensor.Full(dt, v, 3), Grad: tensor.Full(dt, v, 3), Frozen: frozen}
		all = append(all, p)
	}
	return all
}

func TestRegression_S1_5_ParametersOfSeveralDTypes(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	for _, frozen := range []bool{false, true} {
		params := [][]*autograd.Param{mixed(0, frozen), mixed(1, frozen), mixed(8, frozen)}
		all(t, together(groups,
			func(g *dist.Group) error { return g.AverageGrads(ctx, slices.Values(params[g.Rank()])) }))
		all(t, together(groups,
			func(g *dist.Group) error { return g.BroadcastParams(ctx, 2, slices.Values(params[g.Rank()])) }))
		for rank, ps := range params {
			want := []float64{3, 3, 3}[rank]
			if frozen {
				want = []float64{0, 1, 8}[rank]
			}
			for i, p := range ps {
				if got := p.Grad.Select(0, 1).Item(); got != want {
					t.Errorf("frozen %v: rank %d, gradient %d: %v, want %v", frozen, rank, i, got, want)
				}
				if got := p.T.Select(0, 2).Item(); got != 8 {
					t.Errorf("rank %d, parameter %d: %v, want those of rank 2", rank, i, got)
				}
			}
		}
	}
}

func TestRegression_S1_5_CollectivesOfNothingMeet(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	none := tensor.Empty(tensor.Float32, 0)
	for name, f := range map[string]func(g *dist.Group) error{
		"all_reduce":     func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean) },
		"reduce":         func(g *dist.Group) error { return g.Reduce(ctx, 1, dist.Sum) },
		"broadcast":      func(g *dist.Group) error { return g.Broadcast(ctx, 0) },
		"no elements":    func(g *dist.Group) error { return g.AllReduce(ctx, dist.Max, none.Clone(), none.Clone()) },
		"gather":         func(g *dist.Group) error { return g.AllGather(ctx, none.Clone(), none) },
		"reduce_scatter": func(g *dist.Group) error { return g.ReduceScatter(ctx, dist.Sum, none.Clone(), none) },
		"all_to_all":     func(g *dist.Group) error { return g.AllToAll(ctx, none.Clone(), none, nil, nil) },
		"grads": func(g *dist.Group) error {
			return g.AverageGrads(ctx, slices.Values([]*autograd.Param(nil)))
		},
		"params": func(g *dist.Group) error {
			return g.BroadcastParams(ctx, 0, slices.Values([]*autograd.Param(nil)))
		},
	} {
		for rank, err := range together(groups, f) {
			if err != nil {
				t.Errorf("%s, rank %d: %v", name, rank, err)
			}
		}
	}
	// One that brings something, and one that brings nothing, make different calls.
	errs := together(groups, func(g *dist.Group) error {
		if g.Rank() == 0 {
			return g.AllReduce(ctx, dist.Sum)
		}
		return g.AllReduce(ctx, dist.Sum, ones(1))
	})
	blamed(t, errs[0], dist.ErrMismatch, 1)
	blamed(t, errs[1], dist.ErrMismatch, 0)
}
