package dist_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// sizes of tensors: none, fewer elements than ranks, one turn, and several.
var lengths = []int{0, 1, 5, 1000, 140_001}

// operand is what a rank has: the same numbers in every run, small enough for exact sums.
func operand(dt tensor.DType, rank, n int) *tensor.Tensor {
	x := tensor.RandInt(tensor.NewGenerator(uint64(rank)), -4, 5, n)
	defer x.Close() // the result may be a view
	return x.To(dt)
}

// fresh returns the operands of all ranks, every second one in shared memory.
func fresh(t testing.TB, dt tensor.DType, size, n int) []*tensor.Tensor {
	ts := make([]*tensor.Tensor, size)
	for r := range ts {
		ts[r] = operand(dt, r, n)
		if r%2 == 1 {
			testutil.NoError(t, ts[r].Share())
			t.Cleanup(func() { testutil.NoError(t, ts[r].Close()) })
		}
	}
	return ts
}

// serial reduces what the ranks have, in their order.
func serial(op dist.Op, ts []*tensor.Tensor) *tensor.Tensor {
	sum := ts[0].Clone()
	for _, t := range ts[1:] {
		switch op {
		case dist.Sum, dist.Mean:
			sum.AddInPlace(t)
		case dist.Prod:
			sum.MulInPlace(t)
		case dist.Max:
			sum.CopyFrom(tensor.Maximum(sum, t))
		case dist.Min:
			sum.CopyFrom(tensor.Minimum(sum, t))
		}
	}
	if op == dist.Mean {
		sum.DivInPlace(tensor.Full(sum.DType(), float64(len(ts))))
	}
	return sum
}

func want(t testing.TB, what string, got, want *tensor.Tensor) {
	t.Helper()
	if !tensor.Equal(got, want) {
		t.Errorf("%s: %v\nwant %v", what, got, want)
	}
}

// kinds are the dtypes that can be reduced, those that have a mean first.
var kinds = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64,
	tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint8}

func TestAllReduce_OfEveryOpAndDType(t *testing.T) {
	for _, size := range []int{1, 2, 3} {
		groups := handles(t, size)
		for _, n := range lengths {
			for _, op := range []dist.Op{dist.Sum, dist.Mean, dist.Max, dist.Min, dist.Prod} {
				for i, dt := range kinds {
					if op == dist.Mean && i > 3 || n > 1000 && (dt != tensor.Float64 || op > dist.Sum || size == 1) {
						continue
					}
					what := fmt.Sprintf("%v of %d %v in %d ranks", op, n, dt, size)
					reductions(t, what, groups, op, dt, n)
				}
			}
		}
	}
}

func reductions(t *testing.T, what string, groups []*dist.Group, op dist.Op, dt tensor.DType, n int) {
	ctx, size := testutil.Context(t), len(groups)
	before := fresh(t, dt, size, n)
	result := serial(op, before)

	ts := fresh(t, dt, size, n)
	all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, op, ts[g.Rank()]) }))
	for r := range ts {
		want(t, "all_reduce "+what, ts[r], result)
	}

	ts = fresh(t, dt, size, n)
	root := size - 1
	all(t, together(groups, func(g *dist.Group) error { return g.Reduce(ctx, root, op, ts[g.Rank()]) }))
	for r := range ts {
		if r == root {
			want(t, "reduce "+what, ts[r], result)
		} else {
			want(t, "what others have after reduce "+what, ts[r], before[r])
		}
	}

	whole := fresh(t, dt, size, size*n)
	results := serial(op, whole)
	parts := fresh(t, dt, size, n)
	all(t, together(groups,
		func(g *dist.Group) error { return g.ReduceScatter(ctx, op, parts[g.Rank()], whole[g.Rank()]) }))
	for r := range parts {
		want(t, "reduce_scatter "+what, parts[r], results.Narrow(0, r*n, n))
	}
}

func TestBroadcast_AndAllGather(t *testing.T) {
	for _, size := range []int{1, 2, 3} {
		groups, ctx := handles(t, size), testutil.Context(t)
		for _, n := range lengths {
			for _, dt := range append(kinds, tensor.Bool, tensor.Complex128) {
				if n > 1000 && dt != tensor.Float64 {
					continue
				}
				ts := fresh(t, dt, size, n)
				root := size / 2
				given := ts[root].Clone()
				gathered := tensor.Cat(0, ts...)
				got := make([]*tensor.Tensor, size)
				all(t, together(groups, func(g *dist.Group) error {
					got[g.Rank()] = tensor.New(dt, size, n)
					return g.AllGather(ctx, got[g.Rank()], ts[g.Rank()])
				}))
				for _, g := range got {
					want(t, "all_gather", g.View(size*n), gathered)
				}
				all(t, together(groups, func(g *dist.Group) error { return g.Broadcast(ctx, root, ts[g.Rank()]) }))
				for _, g := range ts {
					want(t, "broadcast", g, given)
				}
			}
		}
	}
}

func TestAllReduce_OfSeveralTensorsInOneCall(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	shapes := [][]int{{7}, {0, 4}, {}, {300, 1001}, {3, 5}}
	make1 := func(rank int) (ts []*tensor.Tensor) {
		for i, s := range shapes {
			ts = append(ts, tensor.RandN(tensor.Float64, tensor.NewGenerator(uint64(10*rank+i)), s...))
		}
		return ts
	}
	ts := [][]*tensor.Tensor{make1(0), make1(1), make1(2)}
	versions := ts[1][0].Version()
	all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean, ts[g.Rank()]...) }))
	for i := range shapes {
		result := serial(dist.Mean, []*tensor.Tensor{make1(0)[i], make1(1)[i], make1(2)[i]})
		for r := range ts {
			if !tensor.AllClose(ts[r][i], result, 1e-12, 1e-12) {
				t.Errorf("tensor %d of rank %d: %v, want %v", i, r, ts[r][i], result)
			}
			want(t, "the same bits in all ranks", ts[r][i], ts[0][i])
		}
	}
	if ts[1][0].Version() == versions {
		t.Error("a graph that needs the old elements would not notice")
	}
}

func TestAllReduce_PropagatesNaN(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, op := range []dist.Op{dist.Max, dist.Min, dist.Sum} {
		ts := []*tensor.Tensor{tensor.FromSlice([]float32{nan, 1, inf}, 3), tensor.FromSlice([]float32{2, nan, inf}, 3)}
		all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, op, ts[g.Rank()]) }))
		got := tensor.Data[float32](ts[1])
		if got[0] == got[0] || got[1] == got[1] || got[2] != inf {
			t.Errorf("%v: %v", op, got)
		}
	}
}

func TestGroup_ManyCallsInARow(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	sums := make([]float64, 3)
	all(t, together(groups, func(g *dist.Group) error {
		v := tensor.Full(tensor.Float64, float64(g.Rank()))
		for i := range 300 {
			if err := g.Broadcast(ctx, i%3, v); err != nil {
				return err
			}
			v.AddScalarInPlace(float64(g.Rank()))
			if err := g.AllReduce(ctx, dist.Mean, v); err != nil {
				return err
			}
			if err := g.Barrier(ctx); err != nil {
				return err
			}
		}
		sums[g.Rank()] = v.Item()
		return nil
	}))
	if !slices.Equal(sums, []float64{300, 300, 300}) {
		t.Error(sums)
	}
}
