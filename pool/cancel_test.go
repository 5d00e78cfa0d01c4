package pool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var halves = pool.Register("halves", func(_ context.Context, n int) (*tensor.Tensor, error) {
	t, err := tensor.NewShared(tensor.Float32, n)
	if err != nil {
		return nil, err
	}
	return t.Fill(0.5).Give(), nil
})

// Cancel ends a call that runs and one that waits. The pool goes on.
func TestResult_Cancel(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		ctx := testutil.Context(t)
		p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: m}})
		dir := t.TempDir()
		running := gated.ApplyAsync(p, dir)
		waiting := square.MapAsync(p, []int{1, 2, 3})
		called := make(chan error, 1)
		waiting.Then(func(_ []int, err error) { called <- err })
		if !waiting.Cancel() || !running.Cancel() || running.Cancel() {
			t.Error("want true, true and false")
		}
		if _, err := running.Get(ctx); !errors.Is(err, pool.ErrCanceled) || !errors.Is(err, context.Canceled) {
			t.Errorf("the running call: %v, want ErrCanceled", err)
		}
		if _, err := waiting.Get(ctx); !errors.Is(err, pool.ErrCanceled) {
			t.Errorf("the waiting call: %v, want ErrCanceled", err)
		}
		if err := <-called; !errors.Is(err, pool.ErrCanceled) {
			t.Errorf("the callback got %v, want ErrCanceled", err)
		}
		// The gate stays closed, so a worker that does not notice the cancellation never gets here.
		after := square.ApplyAsync(p, 3)
		if got := testutil.Value(after.Get(ctx))(t); got != 9 {
			t.Errorf("the next call returned %d, want 9", got)
		}
		if after.Cancel() {
			t.Error("Cancel of a result that is there: true")
		}
		if none := square.MapAsync(p, nil); none.Cancel() {
			t.Error("Cancel of a call without values: true")
		}
	})
}

// A result that arrives while its call is canceled leaves no memory behind: see open.
func TestResult_CancelReleasesResults(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		ctx := testutil.Context(t)
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		canceled := 0
		for i := range 200 {
			r := halves.ChunkSize(1).MapAsync(p, []int{64 << 10, 64 << 10, 64 << 10})
			if i%2 == 0 {
				testutil.Value(square.Apply(ctx, p, 2))(t)
			}
			if r.Cancel() {
				canceled++
				continue
			}
			for _, h := range testutil.Value(r.Get(ctx))(t) {
				testutil.NoError(t, h.Close())
			}
		}
		if canceled == 0 {
			t.Error("every call was over before it was canceled")
		}
	})
}

// Results come in the order in which they are there, and the end of the context is the last.
func TestAsCompleted(t *testing.T) {
	ctx := testutil.Context(t)
	p := open(t, pool.Options{Workers: 2})
	dir := t.TempDir()
	slow, fast := gated.ApplyAsync(p, dir), gated.ApplyAsync(p, "/")
	failed := gated.ApplyAsync(p, dir)
	failed.Cancel()
	canceled, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n := 0
	fast.Cancel()
	for r, err := range pool.AsCompleted(canceled, slow, fast, failed) {
		switch n++; {
		case n <= 2 && (err != nil || r == slow):
			t.Errorf("%d: %p, %v: want one of the two that are over", n, r, err)
		case n == 2:
			cancel(errors.New("enough"))
		case n == 3 && (r != nil || err == nil || err.Error() != "enough"):
			t.Errorf("%d: %p, %v: want the cause of the context", n, r, err)
		}
	}
	if n != 3 {
		t.Errorf("%d pairs, want 3", n)
	}
	openGate(t, dir)
	for r, err := range pool.AsCompleted(ctx, slow, failed) { // FIRST_EXCEPTION
		testutil.NoError(t, err)
		if _, err := r.Get(ctx); err != nil {
			if r != failed {
				t.Errorf("the gated call: %v", err)
			}
			break
		}
	}
	for range pool.AsCompleted[int](ctx) {
		t.Error("no results yield one")
	}
}

// CancelPending fails what waits, in the pool and in the queues of its workers, and nothing else.
func TestPool_CancelPending(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		ctx := testutil.Context(t)
		p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: m}})
		testutil.NoError(t, p.Ready(ctx))
		dir := t.TempDir()
		running := gated.ApplyAsync(p, dir)
		var waiting []*pool.Result[int]
		for i := range 20 {
			waiting = append(waiting, square.ApplyAsync(p, i))
		}
		// The worker has taken the first call when it is not among those that are taken back.
		n := p.CancelPending()
		if n != len(waiting) && n != len(waiting)+1 {
			t.Errorf("%d tasks were canceled, want %d", n, len(waiting))
		}
		for i, r := range waiting {
			if _, err := r.Get(ctx); !errors.Is(err, pool.ErrCanceled) {
				t.Errorf("call %d: %v, want ErrCanceled", i, err)
			}
		}
		openGate(t, dir)
		if _, err := running.Get(ctx); n == len(waiting) && err != nil {
			t.Errorf("the running call: %v", err)
		}
		p.Finish()
		testutil.NoError(t, p.Join(ctx))
	})
}
