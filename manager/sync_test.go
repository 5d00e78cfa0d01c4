package manager_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/test/testutil"
)

func brief(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestQueue_KeepsItsOrder(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		q, err := manager.NewQueue[int](ctx, m, 3)
		closing(t, q, err)
		var got []int
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 100 {
				v, err := q.Get(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				got = append(got, v)
			}
		})
		for i := range 100 {
			testutil.NoError(t, q.Put(ctx, i))
		}
		wg.Wait()
		if len(got) != 100 || !slices.IsSorted(got) {
			t.Errorf("%v", got)
		}
		_, err = q.TryGet(ctx)
		testutil.ErrorIs(t, err, manager.ErrEmpty)
		for i := range 3 {
			testutil.NoError(t, q.TryPut(ctx, i))
		}
		testutil.ErrorIs(t, q.TryPut(ctx, 3), manager.ErrFull)
		testutil.ErrorIs(t, q.Put(brief(t), 3), manager.ErrFull, context.DeadlineExceeded)
	})
}

// A value that arrives when its caller has gone away is the next one's.
func TestQueue_CancelledGetLosesNothing(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		q, err := manager.NewQueue[int](ctx, m, ipc.Unbounded)
		closing(t, q, err)
		const count = 100
		var puts sync.WaitGroup
		defer puts.Wait() // the last value may be here before its Put knows
		puts.Go(func() {
			for i := range count {
				if err := q.Put(ctx, i); err != nil {
					t.Error(err)
				}
			}
		})
		seen := make(map[int]bool)
		for len(seen) < count && ctx.Err() == nil {
			short, cancel := context.WithTimeout(ctx, time.Duration(len(seen)%7)*20*time.Microsecond)
			v, err := q.Get(short)
			cancel()
			if err == nil {
				if seen[v] {
					t.Fatalf("%d arrived twice", v)
				}
				seen[v] = true
			} else {
				testutil.ErrorIs(t, err, context.DeadlineExceeded)
			}
			if len(seen)%7 == 0 { // a deadline of 0 never succeeds
				v, err := q.Get(ctx)
				testutil.NoError(t, err)
				seen[v] = true
			}
		}
	})
}

func TestJoinableQueue_JoinWaitsForWhatIsNotDone(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	q, err := manager.NewJoinableQueue[int](ctx, m, ipc.Unbounded)
	closing(t, q, err)
	testutil.NoError(t, q.Join(ctx))
	testutil.ErrorIs(t, q.TaskDone(ctx), manager.ErrReleased)
	for i := range 3 {
		testutil.NoError(t, q.Put(ctx, i))
	}
	testutil.ErrorIs(t, q.TaskDone(ctx), manager.ErrReleased)
	testutil.ErrorIs(t, q.Join(brief(t)), context.DeadlineExceeded)
	joined := make(chan error)
	go func() { joined <- q.Join(ctx) }()
	for range 3 {
		_, err := q.Get(ctx)
		testutil.NoError(t, err)
		select {
		case err := <-joined:
			t.Fatalf("joined too early: %v", err)
		default:
		}
		testutil.NoError(t, q.TaskDone(ctx))
	}
	testutil.NoError(t, <-joined)
}

func TestMutex_Excludes(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		l, err := manager.NewMutex(ctx, m)
		closing(t, l, err)
		inside, n := 0, 0
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if err := l.Lock(ctx); err != nil {
						t.Error(err)
						return
					}
					if inside++; inside != 1 {
						t.Errorf("%d are inside", inside)
					}
					n++
					inside--
					if err := l.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n != 200 {
			t.Errorf("%d", n)
		}
		testutil.ErrorIs(t, l.Unlock(ctx), manager.ErrNotOwner)
		testutil.NoError(t, l.TryLock(ctx))
		testutil.ErrorIs(t, l.TryLock(ctx), manager.ErrLocked)
		testutil.ErrorIs(t, l.Lock(brief(t)), context.DeadlineExceeded)
		testutil.NoError(t, l.Unlock(ctx))
	})
}

// The lock that a cancelled caller was given all the same is free again.
func TestMutex_CancelledLockIsNotKept(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	l, err := manager.NewMutex(ctx, m)
	closing(t, l, err)
	for i := range 100 {
		short, cancel := context.WithTimeout(ctx, time.Duration(i)*time.Microsecond)
		if err := l.Lock(short); err == nil {
			testutil.NoError(t, l.Unlock(ctx))
		}
		cancel()
	}
	testutil.NoError(t, l.Lock(ctx))
	testutil.NoError(t, l.Unlock(ctx))
}

func TestRecursiveMutex_BelongsToItsProxy(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	d, err := manager.NewDict[int, *manager.RecursiveMutex](ctx, m)
	closing(t, d, err)
	a, err := manager.NewRecursiveMutex(ctx, m)
	closing(t, a, err)
	testutil.NoError(t, d.Set(ctx, 0, a))
	b, err := d.Get(ctx, 0)
	closing(t, b, err)
	testutil.NoError(t, a.Lock(ctx))
	testutil.NoError(t, a.Lock(ctx))
	testutil.ErrorIs(t, b.TryLock(ctx), manager.ErrLocked)
	testutil.ErrorIs(t, b.Unlock(ctx), manager.ErrNotOwner)
	testutil.NoError(t, a.Unlock(ctx))
	testutil.ErrorIs(t, b.TryLock(ctx), manager.ErrLocked)
	testutil.NoError(t, a.Unlock(ctx))
	testutil.NoError(t, b.TryLock(ctx))
	testutil.NoError(t, b.Unlock(ctx))
}

func TestEvent_AndSemaphoreAndBarrierArePythons(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	e, err := manager.NewEvent(ctx, m)
	closing(t, e, err)
	testutil.ErrorIs(t, e.Wait(brief(t)), context.DeadlineExceeded)
	waited := make(chan error)
	go func() { waited <- e.Wait(ctx) }()
	testutil.NoError(t, e.Set(ctx))
	testutil.NoError(t, <-waited)
	ok, err := e.IsSet(ctx)
	want(t, ok, err, true)
	testutil.NoError(t, e.Clear(ctx))
	ok, err = e.IsSet(ctx)
	want(t, ok, err, false)

	s, err := manager.NewBoundedSemaphore(ctx, m, 2)
	closing(t, s, err)
	testutil.NoError(t, s.Acquire(ctx))
	testutil.NoError(t, s.Acquire(ctx))
	testutil.ErrorIs(t, s.TryAcquire(ctx), manager.ErrLocked)
	testutil.ErrorIs(t, s.Acquire(brief(t)), context.DeadlineExceeded)
	testutil.NoError(t, s.Release(ctx))
	testutil.NoError(t, s.Release(ctx))
	n := 0
	for n != 2 { // the Acquire that gave up may have got one too late, and returns it
		n, err = s.Permits(ctx)
		testutil.NoError(t, err)
	}
	testutil.ErrorIs(t, s.Release(ctx), manager.ErrReleased)

	b, err := manager.NewBarrier(ctx, m, 3)
	closing(t, b, err)
	for range 3 {
		places := make([]bool, 3)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				i, err := b.Wait(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				places[i] = true
			})
		}
		wg.Wait()
		if slices.Contains(places, false) {
			t.Errorf("%v", places)
		}
	}
	_, err = b.Wait(brief(t)) // it may be over before the server hears of it, or after
	testutil.ErrorIs(t, err, manager.ErrBroken)
	testutil.ErrorIs(t, err, context.DeadlineExceeded)
	for broken := false; !broken && ctx.Err() == nil; { // a slow server hears of it a little later
		broken, err = b.Broken(ctx)
		testutil.NoError(t, err)
	}
	_, err = b.Wait(ctx)
	testutil.ErrorIs(t, err, manager.ErrBroken)
	testutil.NoError(t, b.Reset(ctx))
	go func() { _, err := b.Wait(ctx); waited <- err }()
	for n := 0; n == 0 && ctx.Err() == nil; {
		n, err = b.Waiting(ctx)
		testutil.NoError(t, err)
	}
	testutil.NoError(t, b.Abort(ctx))
	testutil.ErrorIs(t, <-waited, manager.ErrBroken)
}

// A party that comes too late breaks a barrier for those who wait, although it has not waited
// itself.
func TestBarrier_IsBrokenByALateParty(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		b, err := manager.NewBarrier(ctx, m, 3)
		closing(t, b, err)
		waited := make(chan error, 1)
		go func() { _, err := b.Wait(ctx); waited <- err }()
		for n := 0; n == 0 && ctx.Err() == nil; {
			n, err = b.Waiting(ctx)
			testutil.NoError(t, err)
		}
		why := errors.New("no time")
		over, end := context.WithCancelCause(ctx)
		end(why)
		_, err = b.Wait(over)
		testutil.ErrorIs(t, err, manager.ErrBroken)
		testutil.ErrorIs(t, err, why)
		testutil.ErrorIs(t, <-waited, manager.ErrBroken)
	})
}

// The last one to come acts, before anybody goes on.
func TestBarrier_ActionIsTheLastOnes(t *testing.T) {
	each(t, func(t *testing.T, m *manager.Manager) {
		ctx := testutil.Context(t)
		b, err := manager.NewBarrier(ctx, m, 3)
		closing(t, b, err)
		n, err := b.Parties(ctx)
		want(t, n, err, 3)
		acted := 0 // no lock: who waits goes on after it
		b.Action = func() error { acted++; return nil }
		for turn := 1; turn <= 3; turn++ {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if _, err := b.Wait(ctx); err != nil || acted != turn {
						t.Errorf("turn %d: the action ran %d times, %v", turn, acted, err)
					}
				})
			}
			wg.Wait()
		}
		failure := errors.New("failure")
		b.Action = func() error { return failure }
		errs := make(chan error, 3)
		for range 3 {
			go func() { _, err := b.Wait(ctx); errs <- err }()
		}
		failed := 0
		for range 3 {
			err := <-errs
			testutil.ErrorIs(t, err, manager.ErrBroken)
			if errors.Is(err, failure) {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("%d of them failed", failed)
		}
	})
}

// Whatever becomes of the action, nobody waits for it for ever.
func TestBarrier_WhoseActionDoesNotEnd(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	b, err := manager.NewBarrier(ctx, m, 2)
	closing(t, b, err)
	for name, act := range map[string]func(){
		"a panic":        func() { panic("at once") },
		"a Goexit":       runtime.Goexit,
		"a reset in it":  func() { testutil.NoError(t, b.Reset(ctx)) },
		"an abort in it": func() { testutil.NoError(t, b.Abort(ctx)) },
	} {
		testutil.NoError(t, b.Reset(ctx))
		b.Action = func() error { act(); return nil }
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				defer func() {
					if recover() != nil {
						errs <- manager.ErrBroken
					}
				}()
				err := errors.New("left")
				defer func() { errs <- err }()
				_, err = b.Wait(ctx)
			}()
		}
		for range 2 {
			if err := <-errs; err == nil {
				t.Errorf("%s: somebody went on", name)
			}
		}
	}
	// The caller's deadline ends while it acts: the turn ends all the same.
	testutil.NoError(t, b.Reset(ctx))
	waited := make(chan error, 1)
	b.Action = nil
	go func() { _, err := b.Wait(ctx); waited <- err }()
	for n := 0; n == 0 && ctx.Err() == nil; {
		n, err = b.Waiting(ctx)
		testutil.NoError(t, err)
	}
	short, cancel := context.WithCancel(ctx)
	last := *b
	last.Action = func() error { cancel(); return nil }
	last.Wait(short)
	testutil.NoError(t, <-waited)
}

func TestCond_WakesThoseItNotifies(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	c, err := manager.NewCond(ctx, m)
	closing(t, c, err)
	ready, err := manager.NewValue(ctx, m, 0)
	closing(t, ready, err)
	testutil.ErrorIs(t, c.Wait(ctx), manager.ErrNotOwner)
	testutil.ErrorIs(t, c.Notify(ctx, 1), manager.ErrNotOwner)
	const waiters = 3
	woken := make(chan error, waiters)
	var waiting sync.WaitGroup
	for range waiters {
		waiting.Add(1)
		d, err := manager.NewDict[int, *manager.Cond](ctx, m) // each waiter needs a proxy of its own
		testutil.NoError(t, err)
		testutil.NoError(t, d.Set(ctx, 0, c))
		mine, err := d.Get(ctx, 0)
		testutil.NoError(t, errors.Join(err, d.Close()))
		go func() {
			defer mine.Close()
			err := mine.Lock(ctx)
			waiting.Done()
			err = errors.Join(err, mine.WaitFor(ctx,
				func() bool { n, err := ready.Get(ctx); return err != nil || n > 0 }))
			woken <- errors.Join(err, mine.Unlock(ctx))
		}()
	}
	waiting.Wait()
	testutil.NoError(t, c.Lock(ctx))
	_, err = ready.Add(ctx, 1)
	testutil.NoError(t, err)
	testutil.NoError(t, c.NotifyAll(ctx))
	testutil.NoError(t, c.Unlock(ctx))
	for range waiters {
		testutil.NoError(t, <-woken)
	}
	testutil.NoError(t, c.Lock(ctx))
	testutil.ErrorIs(t, c.Wait(brief(t)), context.DeadlineExceeded)
	for ctx.Err() == nil { // it was released
		if err := c.TryLock(ctx); !errors.Is(err, manager.ErrLocked) {
			testutil.NoError(t, err)
			break
		}
	}
	testutil.NoError(t, c.Unlock(ctx))
}

// A waiter that was woken for nothing while a transaction goes on waits for its end, and may be
// cancelled there.
func TestTxn_LetsAWaiterLeave(t *testing.T) {
	ctx, m := testutil.Context(t), local(t)
	c, err := manager.NewCond(ctx, m)
	closing(t, c, err)
	d, err := manager.NewDict[int, *manager.Cond](ctx, m) // each waiter needs a proxy of its own
	closing(t, d, err)
	testutil.NoError(t, d.Set(ctx, 0, c))
	wait := func(ctx context.Context) (ended chan error) {
		mine, err := d.Get(t.Context(), 0)
		closing(t, mine, err)
		testutil.NoError(t, mine.Lock(ctx))
		ended = make(chan error, 1)
		go func() {
			err := mine.Wait(ctx)
			if err == nil {
				err = mine.Unlock(ctx)
			}
			ended <- err
		}()
		testutil.NoError(t, errors.Join(c.Lock(ctx), c.Unlock(ctx))) // it waits
		return ended
	}
	one, leaveOne := context.WithCancel(ctx)
	two, leaveTwo := context.WithCancel(ctx)
	first, second := wait(one), wait(two)
	testutil.NoError(t, m.Txn(ctx, func(context.Context) error {
		leaveTwo() // which wakes the first
		testutil.ErrorIs(t, <-second, context.Canceled)
		time.Sleep(20 * time.Millisecond) // it is on its way to the transaction's end then, as a rule
		leaveOne()
		testutil.ErrorIs(t, <-first, context.Canceled)
		return nil
	}))
	third := wait(ctx)
	testutil.NoError(t, errors.Join(c.Lock(ctx), c.Notify(ctx, 1), c.Unlock(ctx)))
	testutil.NoError(t, <-third)
}
