package dist_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRegression_S3_3_GroupsOfSomeRanks(t *testing.T) {
	t.Run("work", func(t *testing.T) {
		groups, ctx := handles(t, 4), testutil.Context(t)
		all(t, together(groups, func(g *dist.Group) error {
			even, err := g.NewGroup(ctx, 2, 0) // in the order of the ranks, however they are named
			testutil.NoError(t, err)
			defer even.Close()
			odd, err := g.NewGroup(ctx, 1, 3)
			testutil.NoError(t, err)
			defer odd.Close()
			every, err := g.NewGroup(ctx)
			testutil.NoError(t, err)
			defer every.Close()
			mine, other := even, odd
			if g.Rank()%2 == 1 {
				mine, other = odd, even
			}
			if mine.Rank() != g.Rank()/2 || mine.Size() != 2 || other.Rank() != -1 || other.Size() != 2 ||
				every.Rank() != g.Rank() || every.Size() != 4 {
				t.Errorf("rank %d is %d of %d, %d, and %d", g.Rank(), mine.Rank(), mine.Size(), other.Rank(),
					every.Rank())
			}
			for range 20 { // each at its own pace
				x := tensor.Full(tensor.Int64, float64(g.Rank()), 3)
				if err := mine.AllReduce(ctx, dist.Sum, x); err != nil {
					return err
				}
				if want := float64(2 + 2*(g.Rank()%2)); x.Select(0, 0).Item() != want {
					t.Errorf("rank %d has a sum of %v, not %v", g.Rank(), x, want)
				}
			}
			outside := other.AllReduce(ctx, dist.Sum, ones(1))
			if !errors.Is(outside, dist.ErrRank) || !strings.Contains(outside.Error(), "not a member") {
				t.Error(outside)
			}
			q, err := ipc.NewQueue[*dist.Group](1)
			testutil.NoError(t, err)
			defer q.Close()
			for _, err := range []error{other.Send(ctx, 0, 0, ones(1)),
				other.Async(ctx, func(g *dist.Group) error { return g.Barrier(ctx) }).Wait(ctx),
				other.Join(0), q.Put(ctx, other)} {
				if !errors.Is(err, dist.ErrRank) {
					t.Error(err)
				}
			}
			sub, err := every.NewGroup(ctx, 1, 2) // of a group of a group
			testutil.NoError(t, err)
			defer sub.Close()
			if sub.Rank() >= 0 {
				testutil.NoError(t, sub.Barrier(ctx))
			}
			return g.Barrier(ctx)
		}))
	})
	nothingIsLeft(t)
}

func TestRegression_S3_3_GroupsThatCannotBe(t *testing.T) {
	groups, ctx := handles(t, 3), testutil.Context(t)
	for _, ranks := range [][]int{{3}, {-1, 0}, {1, 1}} {
		for _, err := range together(groups,
			func(g *dist.Group) error { _, err := g.NewGroup(ctx, ranks...); return err }) {
			if !errors.Is(err, dist.ErrTensor) {
				t.Errorf("%v: %v", ranks, err)
			}
		}
	}
	errs := together(groups, func(g *dist.Group) error { _, err := g.NewGroup(ctx, 0, 1+g.Rank()/2); return err })
	blamed(t, errs[0], dist.ErrMismatch, 2)
	blamed(t, errs[2], dist.ErrMismatch, 0, 1)
	all(t, together(groups, func(g *dist.Group) error { return g.Barrier(ctx) }))
	// A member that leaves is told by its group; who is in others only is not concerned.
	errs = together(groups, func(g *dist.Group) error {
		sub, err := g.NewGroup(ctx, 0, 1)
		testutil.NoError(t, err)
		defer sub.Close()
		if g.Rank() == 1 {
			return sub.Close()
		}
		if g.Rank() == 0 {
			return sub.Barrier(ctx)
		}
		return nil
	})
	blamed(t, errs[0], dist.ErrLeft, 1)
	testutil.NoError(t, errors.Join(errs[1:]...))
	all(t, together(groups, func(g *dist.Group) error { return g.Barrier(ctx) }))
}
