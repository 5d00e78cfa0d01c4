package pool_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// leftOf returns how long a task has until its deadline, or 0.
var leftOf = pool.Register("leftOf", func(ctx context.Context, _ int) (time.Duration, error) {
	at, ok := ctx.Deadline()
	if !ok {
		return 0, nil
	}
	return time.Until(at), nil
})

// waitsForDeadline returns how its context ended.
var waitsForDeadline = pool.Register("waitsForDeadline", func(ctx context.Context, _ int) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
})

func TestPool_TasksHaveTheDeadlineOfTheirCaller(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		far := context.WithoutCancel(t.Context())
		p := testutil.Value(pool.New(far, pool.Options{Workers: 1, Process: shoal.Options{Start: m}}))(t)
		defer p.Close()
		ctx, cancel := context.WithTimeout(far, watchdog)
		defer cancel()
		hasDeadline := func(call string, left time.Duration, err error) {
			t.Helper()
			if err != nil || left <= 0 || left > watchdog {
				t.Errorf("%s: the task has %v left, %v, want at most %v", call, left, err, watchdog)
			}
		}
		left, err := leftOf.Apply(ctx, p, 0)
		hasDeadline("Apply", left, err)
		all, err := leftOf.Map(ctx, p, []int{0, 1})
		hasDeadline("Map", slices.Min(all), err)
		for left, err := range leftOf.Imap(ctx, p, slices.Values([]int{0})) {
			hasDeadline("Imap", left, err)
		}
		if left, err := leftOf.Apply(far, p, 0); left != 0 || err != nil {
			t.Errorf("without a deadline: the task has %v left, %v", left, err)
		}
		if left, err := leftOf.ApplyAsync(p, 0).Get(ctx); left != 0 || err != nil {
			t.Errorf("without a context: the task has %v left, %v", left, err)
		}
	})
}

func TestPool_ADeadlineEndsATaskAndItsCaller(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: m}})
		far := context.WithoutCancel(t.Context())
		testutil.NoError(t, p.Ready(far))
		mine := errors.New("mine")
		for range 20 {
			ctx, cancel := context.WithTimeoutCause(far, 5*time.Millisecond, mine)
			if _, err := waitsForDeadline.Apply(ctx, p, 0); err != mine {
				t.Errorf("got %v, want the cause of the context", err)
			}
			cancel()
		}
		if n, err := square.Apply(far, p, 3); n != 9 || err != nil { // the worker is still the same
			t.Errorf("got %d, %v, want 9", n, err)
		}
	})
}

func TestNew_ItsDeadlineIsThatOfTasks(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	p := testutil.Value(pool.New(ctx, pool.Options{Workers: 1, Process: shoal.Options{Start: shoal.GoroutineStart}}))(t)
	defer p.Close()
	if left, err := leftOf.Apply(context.WithoutCancel(ctx), p, 0); err != nil || left <= 0 || left > watchdog {
		t.Errorf("the task has %v left, %v, want at most %v", left, err, watchdog)
	}
}
