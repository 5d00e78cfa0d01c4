package dist_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// shareSome moves the tensors of the ranks for which shared is true to shared memory.
func shareSome(t testing.TB, ts []*tensor.Tensor, shared func(rank int) bool) {
	for r, x := range ts {
		if shared(r) {
			testutil.NoError(t, x.Share())
			t.Cleanup(func() { testutil.NoError(t, x.Close()) })
		}
	}
}

var placements = map[string]func(rank int) bool{
	"shared": func(int) bool { return true },
	"heap":   func(int) bool { return false },
	"mixed":  func(rank int) bool { return rank%2 == 0 },
}

// freed closes tensors and wants their blocks to be free at once: no rank still holds them.
func freed(t testing.TB, ts []*tensor.Tensor) {
	d, err := arena.Default()
	testutil.NoError(t, err)
	for r, x := range ts {
		h := dist.BlockOf(x)
		testutil.NoError(t, x.Close())
		if h != 0 && !d.Stale(h) {
			t.Errorf("the block of rank %d is still held after the call", r)
		}
	}
}

// lastOf returns a copy of the last elements.
func lastOf(x *tensor.Tensor) *tensor.Tensor {
	const n = 1000
	v := x.Narrow(0, x.Numel()-n, n)
	defer v.Close()
	return v.Clone()
}

func TestDirectAllReduce_OfEveryDTypeAndPlacement(t *testing.T) {
	const bytes = 300_000 // more than a slot, and no multiple of the ranks' slices
	dtypes := append([]tensor.DType{tensor.Bool, tensor.Complex64, tensor.Complex128}, kinds...)
	for _, size := range []int{2, 3, 5} {
		groups, ctx := handles(t, size), testutil.Context(t)
		for name, shared := range placements {
			for _, dt := range dtypes {
				for i, op := range ops {
					if size > 2 && i%len(ops) != int(dt)%len(ops) || testing.Short() && op != dist.Sum {
						continue
					}
					small := make([]*tensor.Tensor, size) // through the stage
					large := make([]*tensor.Tensor, size)
					n := bytes/dt.Size() + 3
					for r := range large {
						large[r] = operand(dt, r+100*int(op), n)
						small[r] = lastOf(large[r])
					}
					shareSome(t, large, shared)
					reduce := func(ts []*tensor.Tensor) []error {
						return together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, op, ts[g.Rank()]) })
					}
					if err := reduce(small)[0]; err != nil {
						if !errors.Is(err, dist.ErrTensor) || !errors.Is(reduce(large)[0], dist.ErrTensor) {
							t.Error(err)
						}
						continue
					}
					all(t, reduce(large))
					what := fmt.Sprintf("%v of %v in %d ranks, %s", op, dt, size, name)
					for _, x := range large {
						want(t, what, lastOf(x), small[0])
						want(t, what, x, large[0])
					}
					freed(t, large)
				}
			}
		}
	}
}

func TestDirectAllReduce_AddsInTheOrderOfTheRanks(t *testing.T) {
	const size, n = 4, 300_001
	groups, ctx := handles(t, size), testutil.Context(t)
	for name, shared := range placements {
		ts := make([]*tensor.Tensor, size)
		for r := range ts {
			ts[r] = tensor.RandN(tensor.Float32, tensor.NewGenerator(uint64(r)), n)
		}
		sum := serial(dist.Sum, ts)
		shareSome(t, ts, shared)
		all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ts[g.Rank()]) }))
		for _, x := range ts {
			if !tensor.Equal(x, sum) {
				t.Errorf("%s: the sum has other bits than a serial one", name)
			}
		}
	}
}

// Views at odd offsets, empty tensors and tensors on the heap are parts of one call.
func TestDirectAllReduce_OfSeveralTensors(t *testing.T) {
	const size = 3
	groups, ctx := handles(t, size), testutil.Context(t)
	of := func(rank int) (ts []*tensor.Tensor, base *tensor.Tensor) {
		base, err := tensor.NewShared(tensor.Int32, 100_003)
		testutil.NoError(t, err)
		t.Cleanup(func() { testutil.NoError(t, base.Close()) })
		base.CopyFrom(operand(tensor.Int32, rank, 100_003))
		view := func(at, n int) *tensor.Tensor {
			v := base.Narrow(0, at, n)
			t.Cleanup(func() { testutil.NoError(t, v.Close()) })
			return v
		}
		return []*tensor.Tensor{view(1, 50_001), operand(tensor.Int32, 10+rank, 77_777), view(60_001, 0),
			tensor.New(tensor.Int32, 4, 0), view(50_003, 49_999), operand(tensor.Int32, 20+rank, 1)}, base
	}
	ts, bases, wants := make([][]*tensor.Tensor, size), make([]*tensor.Tensor, size), []*tensor.Tensor{}
	for r := range ts {
		ts[r], bases[r] = of(r)
	}
	for i := range ts[0] {
		wants = append(wants, serial(dist.Sum, []*tensor.Tensor{ts[0][i], ts[1][i], ts[2][i]}))
	}
	all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ts[g.Rank()]...) }))
	for r := range ts {
		for i := range wants {
			want(t, fmt.Sprintf("tensor %d of rank %d", i, r), ts[r][i], wants[i])
		}
		given := operand(tensor.Int32, r, 100_003)
		for _, i := range []int{0, 50_002, 100_002} {
			want(t, "an element beside the views", bases[r].Narrow(0, i, 1), given.Narrow(0, i, 1))
		}
	}
}

func TestDirectAllReduce_OfOverlappingTensors(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	const n = 60_000 // one step through the stage, so that the result is defined
	x, err := tensor.NewShared(tensor.Float64, n+10)
	testutil.NoError(t, err)
	defer x.Close()
	x.Fill(1)
	views := []*tensor.Tensor{x.Narrow(0, 0, n), x.Narrow(0, 0, n)}
	defer views[0].Close()
	defer views[1].Close()
	big := []*tensor.Tensor{operand(tensor.Float64, 1, n), operand(tensor.Float64, 2, n)}
	sum := serial(dist.Sum, big)
	shareSome(t, big, placements["shared"])
	all(t, together(groups, func(g *dist.Group) error {
		return g.AllReduce(ctx, dist.Sum, views[g.Rank()], big[g.Rank()])
	}))
	want(t, "the tensor beside the one of both ranks", big[0], sum)
	want(t, "the tensor beside the one of both ranks", big[1], sum)
}

func TestDirectAllReduce_InSeveralRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("80 MiB for each of two ranks")
	}
	groups, ctx := handles(t, 2), testutil.Context(t)
	const n = 20<<20 + 7
	d, err := arena.Default()
	testutil.NoError(t, err)
	before := d.Stats().Blocks
	for _, name := range []string{"heap", "mixed"} {
		ts := []*tensor.Tensor{operand(tensor.Float32, 1, n), operand(tensor.Float32, 2, n)}
		sum := serial(dist.Mean, ts)
		shareSome(t, ts, placements[name])
		all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean, ts[g.Rank()]) }))
		for _, x := range ts {
			if !tensor.Equal(x, sum) {
				t.Errorf("%s: the mean is wrong", name)
			}
		}
		freed(t, ts)
	}
	testutil.EventuallyNoError(t, func() error { // the operands may start in shared memory
		if n := d.Stats().Blocks; n > before {
			runtime.GC()
			return fmt.Errorf("%d blocks, %d before", n, before)
		}
		return nil
	})
}

func TestDirectAllReduce_ARankThatCannotReadTellsTheOthers(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	failed := errors.New("no such block")
	restore := dist.FailOpens(failed)
	defer restore()
	reduce := func() []error {
		return together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ones(200_000)) })
	}
	for _, err := range reduce() {
		if !errors.Is(err, failed) {
			t.Errorf("got %v, want %v", err, failed)
		}
	}
	restore()
	all(t, reduce()) // the group can still be used
}
