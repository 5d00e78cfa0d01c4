package dist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRegression_S3_3_AMonitoredBarrierNamesWhoIsMissing(t *testing.T) {
	groups, ctx := handles(t, 4), testutil.Context(t)
	everybody := func(g *dist.Group) error { return g.MonitoredBarrier(ctx, watchdog) }
	for range 5 {
		all(t, together(groups, everybody))
	}
	some := []*dist.Group{groups[0], groups[2]}
	errs := together(some, func(g *dist.Group) error {
		return g.MonitoredBarrier(ctx, 50*time.Millisecond*time.Duration(1+10*g.Rank()))
	})
	for _, err := range errs {
		blamed(t, err, context.DeadlineExceeded, 1, 3) // all of them, and all that came say the same
	}
	for _, late := range []*dist.Group{groups[1], groups[3]} {
		blamed(t, late.MonitoredBarrier(ctx, watchdog), context.DeadlineExceeded, 1, 3)
	}
	for range 5 {
		all(t, together(groups, everybody)) // and nothing is broken
	}
	all(t, together(groups, func(g *dist.Group) error { return g.AllReduce(ctx, dist.Sum, ones(3)) }))
	// Rank 0 itself.
	blamed(t, groups[1].MonitoredBarrier(ctx, 10*time.Millisecond), context.DeadlineExceeded, 0)
	testutil.NoError(t, groups[3].Close())
	errs = together(groups[:3], func(g *dist.Group) error {
		if g.Rank() == 1 {
			return nil // its last one counts
		}
		return g.MonitoredBarrier(ctx, watchdog)
	})
	for _, r := range []int{0, 2} {
		blamed(t, errs[r], dist.ErrLeft, 3)
	}
	one := handles(t, 1)
	testutil.NoError(t, one[0].MonitoredBarrier(ctx, time.Second))
	if err := new(dist.Group).MonitoredBarrier(ctx, time.Second); !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	blamed(t, handles(t, 2)[0].MonitoredBarrier(ended, time.Second), context.Canceled, 1)
}
