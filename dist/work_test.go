package dist_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRegression_S3_3_CallsInFlightKeepTheirOrder(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	const n = 60
	all(t, together(groups, func(g *dist.Group) error {
		v := tensor.Full(tensor.Float64, float64(g.Rank()), 3000)
		parts, whole := tensor.New(tensor.Float64, 3), tensor.Full(tensor.Float64, float64(g.Rank()), 9)
		works := make([]*dist.Work, 0, 4*n)
		for i := range n { // of one tensor, so that another order would be another result
			works = append(works, g.Async(ctx,
				func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean, v) }),
				g.Async(ctx, func(g *dist.Group) error { return g.Broadcast(ctx, i%3, v) }),
				g.Async(ctx, func(g *dist.Group) error { return g.Reduce(ctx, i%3, dist.Sum, v) }),
				g.Async(ctx, func(g *dist.Group) error { return g.ReduceScatter(ctx, dist.Sum, parts, whole) }))
		}
		works = append(works, g.Async(ctx, func(g *dist.Group) error { return g.AllGather(ctx, whole, parts) }),
			g.Async(ctx,
				func(g *dist.Group) error {
					return g.AllToAll(ctx, tensor.New(tensor.Float64, 9), tensor.New(tensor.Float64, 9), nil, nil)
				}),
			g.Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) }))
		last := ones(3)
		if err := g.AllReduce(ctx, dist.Max, last); err != nil { // comes after all of them
			return err
		}
		for i, w := range works {
			select {
			case <-w.Done():
			default:
				t.Errorf("call %d has not ended, and one after it has", i)
			}
			if err := w.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
}

// One by one and in flight, the same calls have the same results.
func TestRegression_S3_3_CallsInFlightComputeTheSame(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	run := func(inFlight bool) []*tensor.Tensor {
		results := make([]*tensor.Tensor, 3)
		all(t, together(groups, func(g *dist.Group) error {
			v := tensor.Full(tensor.Float64, float64(g.Rank()), 500)
			results[g.Rank()] = v
			var works []*dist.Work
			for i := range 40 {
				some := []*dist.Work{g.Async(ctx, func(g *dist.Group) error { return g.Reduce(ctx, i%3, dist.Sum, v) }),
					g.Async(ctx, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Mean, v) }),
					g.Async(ctx, func(g *dist.Group) error { return g.Broadcast(ctx, i%3, v) })}
				for _, w := range some {
					if !inFlight {
						testutil.NoError(t, w.Wait(ctx))
					}
				}
				works = append(works, some...)
			}
			for _, w := range works {
				if err := w.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
		return results
	}
	oneByOne, atOnce := run(false), run(true)
	for r := range oneByOne {
		want(t, "in flight", atOnce[r], oneByOne[r])
	}
}

func TestRegression_S3_3_WorksCarryTheirErrors(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	x, y := ones(2), ones(3)
	errs := together(groups, func(g *dist.Group) error {
		mine := x
		if g.Rank() == 1 {
			mine = y
		}
		bad, good := g.Async(ctx,
			func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, mine.Clone()) }),
			g.Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) })
		if err := good.Wait(ctx); err != nil {
			t.Errorf("a call after one that was refused: %v", err)
		}
		if err := bad.Wait(ctx); err != nil {
			return bad.Wait(ctx) // as often as one likes
		}
		return nil
	})
	blamed(t, errs[0], dist.ErrMismatch, 1)
	blamed(t, errs[1], dist.ErrMismatch, 0)
	// The end of the wait is not the end of the call.
	w := groups[0].Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) })
	soon, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	if err := w.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	testutil.NoError(t, groups[1].Barrier(ctx))
	testutil.NoError(t, w.Wait(ctx))
	// A call that waits for its place when its context ends, ends those before it.
	first := groups[0].Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) })
	ends, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	second := groups[0].Async(ends, func(g *dist.Group) error { return g.AllReduce(ends, dist.Sum, x) })
	third := groups[0].Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) })
	if err := second.Wait(ctx); !errors.Is(err, dist.ErrBroken) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for _, w := range []*dist.Work{first, third} {
		if err := w.Wait(ctx); !errors.Is(err, dist.ErrBroken) {
			t.Error(err)
		}
	}
	if err := new(dist.Group).Async(ctx,
		func(g *dist.Group) error { return g.Barrier(ctx) }).Wait(ctx); !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
	pending := handles(t, 2)
	w = pending[0].Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) })
	testutil.NoError(t, pending[1].Close())
	blamed(t, w.Wait(ctx), dist.ErrLeft, 1)
}

func TestAsync_AGoexitIsTheErrorOfItsWork(t *testing.T) {
	groups, ctx := handles(t, 1), testutil.Context(t)
	w := groups[0].Async(ctx, func(*dist.Group) error { runtime.Goexit(); return nil })
	testutil.ErrorContains(t, w.Wait(ctx), "runtime.Goexit")
	testutil.NoError(t, groups[0].Barrier(ctx)) // a later call has its turn
}

func TestAsync_APanicIsTheErrorOfItsWork(t *testing.T) {
	groups, ctx := handles(t, 1), testutil.Context(t)
	w := groups[0].Async(ctx, func(*dist.Group) error { panic("on purpose") })
	err := w.Wait(ctx)
	testutil.ErrorIs(t, err, shoal.ErrPanic)
	testutil.ErrorContains(t, err, "on purpose")
	testutil.NoError(t, groups[0].Barrier(ctx)) // a later call has its turn
}

// A tensor that is closed before the message is sent or received is the error of the Work.
func TestIsend_AClosedTensorIsTheErrorOfItsWork(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	x, y := ones(2), ones(2)
	got := groups[1].Irecv(ctx, 0, 0, y)
	y.Close()
	sent := groups[0].Isend(ctx, 1, 0, x)
	testutil.NoError(t, sent.Wait(ctx))
	if err := got.Wait(ctx); err == nil {
		t.Error("a closed tensor received a message")
	}
	x.Close()
	late := groups[0].Isend(ctx, 1, 0, x)
	if err := late.Wait(ctx); err == nil {
		t.Error("a closed tensor was sent")
	}
	z := ones(2)
	again := groups[1].Irecv(ctx, 0, 0, z)
	testutil.NoError(t, groups[0].Isend(ctx, 1, 0, ones(2)).Wait(ctx))
	testutil.NoError(t, again.Wait(ctx))
}
