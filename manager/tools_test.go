package manager_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestValue_IsSwapped(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		v, err := manager.NewValue(ctx, m, 1.5)
		closing(t, v, err)
		was, err := v.Swap(ctx, -2)
		want(t, was, err, 1.5)
		ok, err := v.CompareAndSwap(ctx, 1.5, 3)
		want(t, ok, err, false)
		ok, err = v.CompareAndSwap(ctx, -2, 3)
		want(t, ok, err, true)
		is, err := v.Get(ctx)
		want(t, is, err, 3)
		testutil.NoError(t, v.Set(ctx, 4))
		is, err = v.Add(ctx, 0.25)
		want(t, is, err, 4.25)
	})
}

func TestSet_IsAskedAndCleared(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	s, err := manager.NewSet[string](ctx, m)
	closing(t, s, err)
	testutil.NoError(t, s.Add(ctx, "a", "b"))
	ok, err := s.Has(ctx, "a")
	want(t, ok, err, true)
	ok, err = s.Has(ctx, "c")
	want(t, ok, err, false)
	testutil.NoError(t, s.Clear(ctx))
	n, err := s.Len(ctx)
	want(t, n, err, 0)
	_, err = s.Pop(ctx)
	testutil.ErrorIs(t, err, manager.ErrNoKey)
}

func TestQueue_KnowsItsSize(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	for _, capacity := range []int{ipc.Unbounded, 3} {
		q, err := manager.NewQueue[int](ctx, m, capacity)
		closing(t, q, err)
		n, err := q.Cap(ctx)
		want(t, n, err, capacity)
		testutil.NoError(t, q.Put(ctx, 1))
		n, err = q.Len(ctx)
		want(t, n, err, 1)
		v, err := q.TryGet(ctx)
		want(t, v, err, 1)
	}
}

func TestArray_IsReadInOneCall(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		a, err := manager.NewArray[int16](ctx, m, 1, 2, 3, 4, 5)
		closing(t, a, err)
		testutil.NoError(t, a.SetSlice(ctx, 1, []int16{7, 8}))
		got, err := a.Slice(ctx, 1, 4)
		if err != nil || !slices.Equal(got, []int16{7, 8, 4}) {
			t.Errorf("%v, %v", got, err)
		}
		got, err = a.Slice(ctx, 5, 5)
		if err != nil || len(got) != 0 {
			t.Errorf("%v, %v", got, err)
		}
		_, err = a.Slice(ctx, -1, 2)
		testutil.ErrorIs(t, err, manager.ErrIndex)
		_, err = a.Slice(ctx, 0, 6)
		testutil.ErrorIs(t, err, manager.ErrIndex)
	})
}

func TestSemaphore_CountsItsPermits(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	s, err := manager.NewSemaphore(ctx, m, 1)
	closing(t, s, err)
	permits := func(n int) {
		t.Helper()
		got, err := s.Permits(ctx)
		want(t, got, err, n)
	}
	for range 2 { // more than at first: it has no bound
		testutil.NoError(t, s.Release(ctx))
	}
	permits(3)
	for range 3 {
		testutil.NoError(t, s.Acquire(ctx))
	}
	testutil.ErrorIs(t, s.TryAcquire(ctx), manager.ErrLocked)
	waited := make(chan error)
	go func() { waited <- s.Acquire(ctx) }()
	testutil.NoError(t, s.Release(ctx))
	testutil.NoError(t, <-waited)
	permits(0)
	_, err = manager.NewSemaphore(ctx, m, -1)
	testutil.ErrorIs(t, err, manager.ErrArgument)
}

// A taker takes permits, says so, and waits for its end.
type taker struct {
	Permits []*manager.Semaphore
	Ready   *ipc.Sender[bool]
}

var takePermits = shoal.Register("manager taker", func(ctx context.Context, _ int, w taker) error {
	for _, s := range w.Permits {
		for range 3 {
			if err := s.Acquire(ctx); err != nil {
				return err
			}
		}
	}
	if err := w.Ready.Put(ctx, true); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

// What a killed process had comes back once: not what somebody has released for it, and not what
// was only a signal.
func TestSemaphore_PermitsOfTheDeadComeBackOnce(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	signalled, err := manager.NewSemaphore(ctx, m, 2)
	closing(t, signalled, err)
	released, err := manager.NewSemaphore(ctx, m, 3)
	closing(t, released, err)
	testutil.NoError(t, signalled.Release(ctx)) // one more than at first
	ready, err := ipc.NewQueue[bool](1)
	closing(t, ready, err)
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := takePermits.Go(g, taker{[]*manager.Semaphore{signalled, released}, ready.Sender()})
	_, err = ready.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, errors.Join(released.Release(ctx), released.Release(ctx))) // for the one that has them
	testutil.NoError(t, p.Signal(os.Kill))
	for _, s := range []struct {
		*manager.Semaphore
		before, after int
	}{{signalled, 0, 2}, {released, 2, 3}} {
		n := s.before
		for n == s.before { // until the server has heard of it
			n, err = s.Permits(ctx)
			testutil.NoError(t, err)
		}
		want(t, n, err, s.after)
	}
}

// A lock that was unlocked without a word about what its dead owner left is no lock any more: for
// nobody, in whichever form.
func TestMutex_DeathIsNotForgotten(t *testing.T) {
	ctx, m := testutil.Context(t), process(t)
	l, err := manager.NewMutex(ctx, m)
	closing(t, l, err)
	r, err := manager.NewRecursiveMutex(ctx, m)
	closing(t, r, err)
	c, err := manager.NewCond(ctx, m)
	closing(t, c, err)
	die := func() { dieWith(ctx, t, lockHolder{Lock: l, RLock: r, Condition: c}) }
	type locker interface {
		Lock(context.Context) error
		MarkConsistent(context.Context) error
		Unlock(context.Context) error
	}
	all := []locker{l, r, c}
	die()
	for _, l := range all {
		testutil.ErrorIs(t, l.Lock(ctx), manager.ErrOwnerDied)
		testutil.NoError(t, errors.Join(l.MarkConsistent(ctx), l.Unlock(ctx), l.Lock(ctx), l.Unlock(ctx)))
		testutil.ErrorIs(t, l.MarkConsistent(ctx), manager.ErrNotOwner)
	}
	die()
	for _, l := range all {
		testutil.ErrorIs(t, l.Lock(ctx), manager.ErrOwnerDied)
		testutil.NoError(t, l.Unlock(ctx))
		testutil.ErrorIs(t, l.Lock(ctx), manager.ErrNotRecoverable)
	}
}

// dieWith starts a process that takes all of these locks, and kills it.
func dieWith(ctx context.Context, t *testing.T, w lockHolder) {
	t.Helper()
	ready, err := ipc.NewQueue[bool](1)
	closing(t, ready, err)
	w.Ready = ready.Sender()
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	p := holdLocks.Go(g, w)
	_, err = ready.Get(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, p.Signal(os.Kill))
	<-end(ctx, p)
}

type lockHolder struct {
	Lock      *manager.Mutex
	RLock     *manager.RecursiveMutex
	Condition *manager.Cond
	Ready     *ipc.Sender[bool]
}

var holdLocks = shoal.Register("manager lock holder", func(ctx context.Context, _ int, w lockHolder) error {
	if err := errors.Join(w.Lock.Lock(ctx), w.RLock.Lock(ctx), w.Condition.Lock(ctx),
		w.Ready.Put(ctx, true)); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})
