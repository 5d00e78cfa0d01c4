package manager_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestTxn_IsAllOrNothing(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		d, err := manager.NewDict[string, int](ctx, m)
		closing(t, d, err)
		l, err := manager.NewList(ctx, m, 1)
		closing(t, l, err)
		a, err := manager.NewArray(ctx, m, 10, 20)
		closing(t, a, err)
		q, err := manager.NewQueue[int](ctx, m, ipc.Unbounded)
		closing(t, q, err)
		change := func(tx context.Context) error {
			_, err := a.Add(tx, 0, 5)
			return errors.Join(err, d.Set(tx, "a", 1), l.Append(tx, 2), q.Put(tx, 7))
		}
		state := func() (keys int, list []int, arr []int, queued int) {
			keys, err1 := d.Len(ctx)
			list, err2 := l.All(ctx)
			arr, err3 := a.All(ctx)
			queued, err4 := q.Len(ctx)
			testutil.NoError(t, errors.Join(err1, err2, err3, err4))
			return
		}
		no := errors.New("no")
		testutil.ErrorIs(t, m.Txn(ctx, func(tx context.Context) error {
			if err := change(tx); err != nil {
				return err
			}
			v, err := a.Get(tx, 0) // its own changes
			want(t, v, err, 15)
			return no
		}), no)
		if n, list, arr, queued := state(); n != 0 || !slices.Equal(list, []int{1}) ||
			!slices.Equal(arr, []int{10, 20}) || queued != 0 {
			t.Errorf("after a rollback: %d %v %v %d", n, list, arr, queued)
		}
		func() {
			defer func() { recover() }()
			m.Txn(ctx, func(tx context.Context) error { testutil.NoError(t, change(tx)); panic("oh") })
		}()
		if n, list, arr, queued := state(); n != 0 || !slices.Equal(list, []int{1}) ||
			!slices.Equal(arr, []int{10, 20}) || queued != 0 {
			t.Errorf("after a panic: %d %v %v %d", n, list, arr, queued)
		}
		testutil.NoError(t, m.Txn(ctx, change))
		if n, list, arr, queued := state(); n != 1 || !slices.Equal(list, []int{1, 2}) ||
			!slices.Equal(arr, []int{15, 20}) || queued != 1 {
			t.Errorf("after a commit: %d %v %v %d", n, list, arr, queued)
		}
	})
}

// A reader sees both accounts before or both after, also in shared memory.
func TestTxn_IsSeenWhole(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		a, err := manager.NewValue(ctx, m, 100)
		closing(t, a, err)
		b, err := manager.NewArray(ctx, m, 100, 0)
		closing(t, b, err)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for range 40 {
					err := m.Txn(ctx, func(tx context.Context) error {
						_, err1 := a.Add(tx, -1)
						_, err2 := b.Add(tx, 0, 1)
						_, err3 := b.Add(tx, 1, 1)
						return errors.Join(err1, err2, err3)
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			vs, err := b.All(ctx)
			testutil.NoError(t, err)
			if vs[0] != 100+vs[1] {
				t.Fatalf("%v", vs)
			}
			testutil.NoError(t, m.Txn(ctx, func(tx context.Context) error {
				x, err1 := a.Get(tx)
				y, err2 := b.Get(tx, 0)
				if x+y != 200 {
					t.Errorf("%d + %d", x, y)
				}
				return errors.Join(err1, err2)
			}))
		}
		v, err := a.Get(ctx)
		want(t, v, err, 20)
	})
}

func TestTxn_RefusesWhatItCannotDo(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	q, err := manager.NewQueue[int](ctx, m, ipc.Unbounded)
	closing(t, q, err)
	l, err := manager.NewMutex(ctx, m)
	closing(t, l, err)
	testutil.NoError(t, m.Txn(ctx, func(tx context.Context) error {
		_, err := q.Get(tx)
		testutil.ErrorIs(t, err, manager.ErrTxn)
		testutil.ErrorIs(t, l.Lock(tx), manager.ErrTxn)
		testutil.ErrorIs(t, m.Txn(tx, nil), manager.ErrTxn)
		return nil
	}))
}

// A call that is cut off leaves open whether it was done; so the whole transaction is undone.
func TestTxn_EndsWithItsDeadline(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	v, err := manager.NewValue(ctx, m, 1)
	closing(t, v, err)
	short, cancel := context.WithCancel(ctx)
	err = m.Txn(short, func(tx context.Context) error {
		testutil.NoError(t, v.Set(tx, 2))
		cancel()
		return v.Set(tx, 3)
	})
	testutil.ErrorIs(t, err, context.Canceled)
	n, err := v.Get(ctx)
	want(t, n, err, 1)
}

// A client that has got a value may go while somebody else's transaction keeps how the queue was.
// That it is gone cannot be undone.
func TestTxn_RollbackBringsNobodyBack(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	far, err := manager.Connect(ctx, func(context.Context) (manager.Stream, error) {
		a, b := net.Pipe()
		go m.Serve(ctx, b)
		return a, nil
	})
	testutil.NoError(t, err)
	q, err := manager.NewJoinableQueue[int](ctx, m, ipc.Unbounded)
	closing(t, q, err)
	testutil.NoError(t, manager.Publish(ctx, m, "q", q))
	defer m.Withdraw(ctx, "q")
	theirs, err := manager.Find[*manager.JoinableQueue[int]](ctx, far, "q")
	testutil.NoError(t, err)
	testutil.NoError(t, q.Put(ctx, 1))
	_, err = theirs.Get(ctx)
	testutil.NoError(t, err)
	no := errors.New("no")
	testutil.ErrorIs(t, m.Txn(ctx, func(tx context.Context) error {
		testutil.ErrorIs(t, q.Join(tx), manager.ErrTxn) // it would wait
		testutil.NoError(t, errors.Join(theirs.Close(), far.Close()))
		for err := error(manager.ErrTxn); errors.Is(err, manager.ErrTxn) && ctx.Err() == nil; err = q.Join(tx) {
			time.Sleep(time.Millisecond) // there is nothing to wait on
		}
		return no
	}), no)
	testutil.ErrorIs(t, q.Join(ctx), manager.ErrTasksLost)
	testutil.NoError(t, q.Join(ctx))
}
