package dist_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// at puts an operand where a rank has its tensors. A rank on the host may have them in memory of
// its own.
type at func(rank int, x *tensor.Tensor) *tensor.Tensor

// exchange wants each call by which ranks exchange n elements to put them in the order of the
// ranks.
func exchange(t *testing.T, groups []*dist.Group, dt tensor.DType, n int, on at) {
	t.Helper()
	size, ctx := len(groups), testutil.Context(t)
	small, large := make([]*tensor.Tensor, size), make([]*tensor.Tensor, size)
	for r := range size {
		small[r], large[r] = operand(dt, r, n), operand(dt, size+r, size*n)
	}
	part := func(of, r int) *tensor.Tensor { return large[of].Narrow(0, r*n, n) }
	all(t, together(groups, func(g *dist.Group) error {
		rank := g.Rank()
		// whole returns a tensor of the root only.
		whole := func(root int, x *tensor.Tensor) *tensor.Tensor {
			if rank != root {
				return nil
			}
			return on(rank, x)
		}
		for root := range size {
			gathered := whole(root, tensor.New(dt, size, n))
			if err := g.Gather(ctx, root, gathered, on(rank, small[rank])); err != nil {
				return err
			}
			if rank == root {
				onHost(t, "gather", gathered.View(-1), tensor.Cat(0, small...))
			}
			mine := on(rank, tensor.New(dt, n))
			if err := g.Scatter(ctx, root, mine, whole(root, large[root])); err != nil {
				return err
			}
			onHost(t, "scatter", mine, part(root, rank))
		}
		dst := on(rank, tensor.New(dt, size, n))
		if err := g.AllToAll(ctx, dst, on(rank, large[rank]), nil, nil); err != nil {
			return err
		}
		for r := range size {
			onHost(t, "all_to_all", dst.Select(0, r), part(r, rank))
		}
		return nil
	}))
}

// onHost wants a tensor, wherever it is, to have these elements.
func onHost(t *testing.T, what string, got, elements *tensor.Tensor) {
	t.Helper()
	here, err := got.CPU()
	if err != nil {
		t.Error(err)
		return
	}
	want(t, what, here, elements)
}

func TestScatter_AndOtherExchanges(t *testing.T) {
	for _, size := range []int{1, 2, 3} {
		groups := handles(t, size)
		for _, n := range lengths {
			for _, dt := range append(slices.Clone(kinds), tensor.Bool, tensor.Complex128) {
				if n <= 1000 || dt == tensor.Float64 {
					exchange(t, groups, dt, n, func(_ int, x *tensor.Tensor) *tensor.Tensor { return x })
				}
			}
		}
	}
}
