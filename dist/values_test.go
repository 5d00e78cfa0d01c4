package dist_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRegression_S3_3_ValuesOfAllRanks(t *testing.T) {
	for _, size := range []int{1, 2, 3} {
		groups, ctx := handles(t, size), testutil.Context(t)
		for root := range size {
			all(t, together(groups, func(g *dist.Group) error {
				text := func(r int) string { return fmt.Sprint("value ", r) }
				var texts []string
				for r := range size {
					texts = append(texts, text(r))
				}
				got, err := dist.BroadcastValue(ctx, g, root, map[string]int{"root": g.Rank()})
				if err != nil || !reflect.DeepEqual(got, map[string]int{"root": root}) {
					t.Errorf("broadcast: %v, %v", got, err)
				}
				everything, err := dist.AllGatherValues(ctx, g, text(g.Rank()))
				if err != nil || !slices.Equal(everything, texts) {
					t.Errorf("all_gather: %v, %v", everything, err)
				}
				if everything, err = dist.GatherValues(ctx, g, root, text(g.Rank())); err != nil ||
					g.Rank() == root && !slices.Equal(everything, texts) || g.Rank() != root && everything != nil {
					t.Errorf("gather: %v, %v", everything, err)
				}
				if g.Rank() != root {
					texts = nil
				}
				mine, err := dist.ScatterValues(ctx, g, root, texts)
				if err != nil || mine != text(g.Rank()) {
					t.Errorf("scatter: %v, %v", mine, err)
				}
				return err
			}))
		}
	}
}

func TestRegression_S3_3_TensorsInValuesAreShared(t *testing.T) {
	t.Run("work", func(t *testing.T) {
		groups, ctx := handles(t, 3), testutil.Context(t)
		all(t, together(groups, func(g *dist.Group) error {
			shape := make([]int, g.Rank()) // of each rank another number of dimensions
			for i := range shape {
				shape[i] = 2
			}
			mine := tensor.Full(tensor.Float64, float64(g.Rank()), shape...)
			got, err := dist.AllGatherValues(ctx, g, mine)
			for r, x := range got {
				if x.Dims() != r || x.Numel() != 1<<r || x.Sum() != float64(r*x.Numel()) {
					t.Errorf("of rank %d: %v", r, x)
				}
				testutil.NoError(t, x.Close())
			}
			return err
		}))
	})
	nothingIsLeft(t)
}

func TestRegression_S3_3_ValuesThatCannotBe(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	for name, f := range map[string]func(g *dist.Group) error{
		"root": func(g *dist.Group) error { _, err := dist.BroadcastValue(ctx, g, 2, 1); return err },
		"type": func(g *dist.Group) error { _, err := dist.BroadcastValue(ctx, g, 0, func() {}); return err },
		"too few": func(g *dist.Group) error {
			_, err := dist.ScatterValues(ctx, g, 0, make([]int, 1-g.Rank()))
			return err
		},
		"everywhere": func(g *dist.Group) error { _, err := dist.ScatterValues(ctx, g, 0, []int{1, 2}); return err },
		"nowhere":    func(g *dist.Group) error { _, err := dist.ScatterValues[int](ctx, g, 0, nil); return err },
	} {
		errs := together(groups, f)
		if !errors.Is(errors.Join(errs...), dist.ErrTensor) || errs[0] == nil || errs[1] == nil {
			t.Errorf("%s: %v", name, errs)
		}
	}
	errs := together(groups, func(g *dist.Group) error {
		if g.Rank() == 0 {
			_, err := dist.AllGatherValues(ctx, g, "a")
			return err
		}
		_, err := dist.AllGatherValues(ctx, g, 1)
		return err
	})
	blamed(t, errs[0], dist.ErrMismatch, 1)
	blamed(t, errs[1], dist.ErrMismatch, 0)
	all(t, together(groups, func(g *dist.Group) error { return g.Barrier(ctx) })) // the group goes on
	if _, err := dist.AllGatherValues(ctx, newGroup(t, 1), 1); !errors.Is(err, dist.ErrRank) {
		t.Error(err)
	}
}
