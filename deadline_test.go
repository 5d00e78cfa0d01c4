package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A reported is what a worker knows of its deadline: how long it is until then, or 0.
type reported struct{ Left time.Duration }

// reportsDeadline reports its deadline, and waits for the end of its context.
var reportsDeadline = shoal.Register("reportsDeadline", func(ctx context.Context, _ int,
	to *ipc.Sender[reported]) error {
	at, ok := ctx.Deadline()
	r := reported{}
	if ok {
		r.Left = time.Until(at)
	}
	if err := to.Put(ctx, r); err != nil || !ok {
		return err
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("got cause %w, want the deadline", context.Cause(ctx))
	}
	return ctx.Err()
})

func TestSpawn_WorkersHaveTheDeadlineOfTheirStarter(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		q := testutil.Value(ipc.NewQueue[reported](1))(t)
		defer q.Close()
		far := testutil.Context(t)
		ctx, cancel := context.WithTimeout(far, 2*time.Second)
		defer cancel()
		g := shoal.NewGroup(ctx, opts)
		reportsDeadline.Go(g, q.Sender())
		r := testutil.Value(q.Get(far))(t)
		if at, _ := ctx.Deadline(); r.Left <= 0 || r.Left > 2*time.Second || time.Now().Add(r.Left).Before(at) {
			t.Errorf("the worker has %v left, want what its starter has", r.Left)
		}
		testutil.ErrorIs(t, g.Wait(), context.DeadlineExceeded)

		g = shoal.NewGroup(context.WithoutCancel(far), opts)
		reportsDeadline.Go(g, q.Sender())
		if r := testutil.Value(q.Get(far))(t); r.Left != 0 {
			t.Errorf("without a deadline: the worker has %v left", r.Left)
		}
		testutil.NoError(t, g.Wait())
	})
}
