//go:build !race

package dist_test

import (
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// It reads a gradient while another goroutine averages it, so the race detector would not like it.

// The first bucket is averaged before Backward has computed the first layer's gradient.
func TestDistributedDataParallel_AveragesWhileBackwardComputes(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	all(t, together(groups, func(g *dist.Group) error {
		n := newNet(7)
		d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{BucketBytes: 1})
		if err != nil {
			return err
		}
		var early atomic.Bool
		first := n.B2.T.Clone().Fill(float64(g.Rank())) // what a rank's last bias has as its gradient
		n.B2.RegisterHook(func(*autograd.Var) *autograd.Var { return autograd.Const(first) })
		n.W1.RegisterHook(func(*autograd.Var) *autograd.Var { // which comes last; Backward waits for the mean
			for ctx.Err() == nil && !early.Load() {
				early.Store(tensor.At[float64](n.B2.Grad, 0) == 0.5)
			}
			return nil
		})
		err = d.Backward(ctx, n.loss(nil, samples(1, 4)))
		if !early.Load() {
			t.Error("no gradient was averaged before Backward came to its end")
		}
		return err
	}))
}
