package dist_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// shapeOf is that of what one rank has for another: of none to several turns, and of different
// dimensions.
func shapeOf(from, to int) []int {
	switch (from + 2*to) % 5 {
	case 0:
		return []int{0, 7}
	case 1:
		return []int{}
	case 2:
		return []int{3, from + 1, 2}
	case 3:
		return []int{100_000 + from}
	}
	return []int{5}
}

func partFor(dt tensor.DType, from, to int) *tensor.Tensor {
	n := 1
	for _, k := range shapeOf(from, to) {
		n *= k
	}
	return operand(dt, 10*from+to, n).View(shapeOf(from, to)...)
}

func TestRegression_S3_3_ExchangesOfDifferentShapes(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5} {
		groups, ctx := handles(t, size), testutil.Context(t)
		for _, dt := range []tensor.DType{tensor.Float32, tensor.Bool, tensor.Complex128} {
			all(t, together(groups, func(g *dist.Group) error {
				var src, dst, gathered []*tensor.Tensor
				for r := range size {
					src = append(src, partFor(dt, g.Rank(), r))
					dst = append(dst, tensor.New(dt, shapeOf(r, g.Rank())...))
					gathered = append(gathered, tensor.New(dt, shapeOf(r, r)...))
				}
				if err := g.AllToAllTensors(ctx, dst, src); err != nil {
					return err
				}
				w := g.Async(ctx, func(g *dist.Group) error { return g.AllGatherTensors(ctx, gathered, src[g.Rank()]) })
				if err := w.Wait(ctx); err != nil {
					return err
				}
				for r := range size {
					want(t, fmt.Sprintf("all_to_all from %d to %d", r, g.Rank()), dst[r], partFor(dt, r, g.Rank()))
					want(t, fmt.Sprintf("all_gather from %d", r), gathered[r], partFor(dt, r, r))
				}
				return nil
			}))
		}
	}
}

// The example of torch.distributed.all_to_all_single with split sizes.
func TestRegression_S3_3_AllToAllOfSplits(t *testing.T) {
	groups, ctx := handles(t, 4), testutil.Context(t)
	src := [][]int64{{0, 1, 2, 3, 4, 5}, {10, 11, 12, 13, 14, 15, 16, 17, 18}, {20, 21, 22, 23, 24},
		{30, 31, 32, 33, 34, 35, 36}}
	in := [][]int{{2, 2, 1, 1}, {3, 2, 2, 2}, {2, 1, 1, 1}, {2, 2, 2, 1}}
	out := [][]int{{2, 3, 2, 2}, {2, 2, 1, 2}, {1, 2, 1, 2}, {1, 2, 1, 1}}
	expect := [][]int64{{0, 1, 10, 11, 12, 20, 21, 30, 31}, {2, 3, 13, 14, 22, 32, 33},
		{4, 15, 16, 23, 34, 35}, {5, 17, 18, 24, 36}}
	all(t, together(groups, func(g *dist.Group) error {
		r := g.Rank()
		dst := tensor.New(tensor.Int64, len(expect[r]))
		err := g.AllToAll(ctx, dst, tensor.FromSlice(src[r], len(src[r])), out[r], in[r])
		if !slices.Equal(tensor.Data[int64](dst), expect[r]) {
			t.Errorf("rank %d: %v, want %v", r, dst, expect[r])
		}
		return err
	}))
}

func TestRegression_S3_3_ExchangesThatDoNotFit(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	list := func(ns ...int) (ts []*tensor.Tensor) {
		for _, n := range ns {
			ts = append(ts, ones(n))
		}
		return ts
	}
	for name, f := range map[string]func(g *dist.Group) error{
		"too few to fill": func(g *dist.Group) error { return g.AllGatherTensors(ctx, list(1), ones(1)) },
		"a missing one": func(g *dist.Group) error {
			return g.AllGatherTensors(ctx, []*tensor.Tensor{ones(1), nil}, ones(1))
		},
		"another dtype": func(g *dist.Group) error {
			return g.AllGatherTensors(ctx, list(1, 1), ones(1).To(tensor.Float64))
		},
		"too few to send": func(g *dist.Group) error { return g.AllToAllTensors(ctx, list(1, 1), list(1)) },
		"not contiguous": func(g *dist.Group) error {
			return g.AllToAllTensors(ctx, list(4, 4), []*tensor.Tensor{ones(2, 2).T(), ones(4)})
		},
		"too many rows": func(g *dist.Group) error {
			return g.AllToAll(ctx, ones(2), ones(2), []int{1, 1}, []int{2, 1})
		},
		"too few rows": func(g *dist.Group) error {
			return g.AllToAll(ctx, ones(2), ones(2), []int{1, 0}, []int{1, 1})
		},
		"rows below 0": func(g *dist.Group) error {
			return g.AllToAll(ctx, ones(2), ones(2), []int{3, -1}, []int{1, 1})
		},
		"no rows": func(g *dist.Group) error {
			return g.AllToAll(ctx, ones(), ones(2), []int{1, 1}, []int{1, 1})
		},
		"too few splits": func(g *dist.Group) error {
			return g.AllToAll(ctx, ones(2), ones(2), []int{2}, []int{1, 1})
		},
	} {
		for _, err := range together(groups, f) {
			if !errors.Is(err, dist.ErrTensor) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	errs := together(groups, func(g *dist.Group) error { return g.AllGatherTensors(ctx, list(2, 3), ones(2)) })
	blamed(t, errs[0], dist.ErrMismatch, 1)
	if !strings.Contains(errs[1].Error(), "rank 1 sends 2 elements to rank 0, which expects 3") {
		t.Error(errs[1])
	}
	// the group goes on
	all(t, together(groups, func(g *dist.Group) error { return g.AllGatherTensors(ctx, list(2, 3), ones(2+g.Rank())) }))
}
