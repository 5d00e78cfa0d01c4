package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A deadline that is over is a timeout of zero: as in Python, and as with package ipc, a call does
// what it can do at once.
func TestDeadline_ThatIsOverTakesWhatIsThere(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	over, end := context.WithDeadline(ctx, time.Unix(0, 0))
	defer end()
	gone, cancel := context.WithCancel(ctx)
	cancel()

	q, err := manager.NewQueue[int](ctx, m, 1)
	closing(t, q, err)
	_, err = q.Get(over)
	testutil.ErrorIs(t, err, manager.ErrEmpty, context.DeadlineExceeded)
	testutil.NoError(t, q.Put(over, 1))
	testutil.ErrorIs(t, q.Put(over, 2), manager.ErrFull, context.DeadlineExceeded)
	_, err = q.Get(gone)
	testutil.ErrorIs(t, err, context.Canceled)
	if v := testutil.Value(q.Get(over))(t); v != 1 {
		t.Errorf("got %d, want 1", v)
	}

	j, err := manager.NewJoinableQueue[int](ctx, m, ipc.Unbounded)
	closing(t, j, err)
	testutil.NoError(t, j.Join(over))
	testutil.NoError(t, j.Put(ctx, 1))
	testutil.ErrorIs(t, j.Join(over), context.DeadlineExceeded)

	e, err := manager.NewEvent(ctx, m)
	closing(t, e, err)
	testutil.ErrorIs(t, e.Wait(over), context.DeadlineExceeded)
	testutil.NoError(t, e.Set(ctx))
	testutil.NoError(t, e.Wait(over))

	s, err := manager.NewSemaphore(ctx, m, 1)
	closing(t, s, err)
	testutil.NoError(t, s.Acquire(over))
	testutil.ErrorIs(t, s.Acquire(over), context.DeadlineExceeded)
	testutil.NoError(t, s.Release(ctx))
	if n := testutil.Value(s.Permits(ctx))(t); n != 1 {
		t.Errorf("%d permits are free, want 1", n)
	}

	l, err := manager.NewMutex(ctx, m)
	closing(t, l, err)
	testutil.NoError(t, l.Lock(over))
	testutil.ErrorIs(t, l.TryLock(over), manager.ErrLocked)
	testutil.NoError(t, l.Unlock(ctx))
	for range 200 { // the cancellation of one call never ends another one
		testutil.NoError(t, q.Put(over, 1))
		testutil.Value(q.Get(ctx))(t)
	}
}
