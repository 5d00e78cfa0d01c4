package arena_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// newSync makes a Sync in the first participant and views of it in all the others.
func newSync(t *testing.T, opts arena.SyncOptions, ds ...*arena.Domain) []*arena.Sync {
	t.Helper()
	s, err := ds[0].NewSync(opts)
	testutil.NoError(t, err)
	views := []*arena.Sync{s}
	for _, d := range ds[1:] {
		testutil.NoError(t, d.Import(s.Handle()))
		v, err := d.OpenSync(s.Handle(), opts.Form)
		testutil.NoError(t, err)
		views = append(views, v)
	}
	return views
}

// soon is a deadline that ends a wait for what does not come.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// async calls f in a goroutine and returns where its error will come.
func async(f func() error) <-chan error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	return c
}

func wantIs(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("the error is %v, want %v", err, w)
		}
	}
}

// wantPeer fails unless err says which participant died.
func wantPeer(t testing.TB, err error, seat int, cause error) {
	t.Helper()
	var p *arena.PeerError
	if !errors.As(err, &p) || p.Seat != seat || p.PID == 0 || !errors.Is(err, cause) {
		t.Errorf("the error is %v, want that participant %d died and %v", err, seat, cause)
	}
}

// died lets a participant die and reaps it.
func died(t *testing.T, d, by *arena.Domain) {
	t.Helper()
	before := by.Stats().Reaped
	testutil.NoError(t, d.Abandon())
	testutil.Eventually(t, func() bool { reap(t, by); return by.Stats().Reaped > before }, "nobody reaped")
}

func TestMutex_Excludes(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		ds := []*arena.Domain{f.first, f.join(), f.join()}
		vs := newSync(t, arena.SyncOptions{Form: arena.FormMutex, Bytes: 8}, ds...)
		var wg sync.WaitGroup
		const each = 300
		for _, v := range vs {
			for range 2 {
				wg.Go(func() {
					m := arena.Mutex{v}
					for range each {
						if err := m.Lock(ctx); err != nil {
							t.Error(err)
							return
						}
						p := v.Data()
						binary.NativeEndian.PutUint64(p, binary.NativeEndian.Uint64(p)+1) // the race detector looks on
						if err := m.Unlock(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		if n := binary.NativeEndian.Uint64(vs[0].Data()); n != 6*each {
			t.Errorf("%d of %d", n, 6*each)
		}
	})
}

func TestMutex_SurvivesItsHolder(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b, c := f.first, f.join(), f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, a, b, c)
		ma, mb, mc := arena.Mutex{vs[0]}, arena.Mutex{vs[1]}, arena.Mutex{vs[2]}
		testutil.NoError(t, mb.Lock(ctx))
		wantIs(t, ma.TryLock(), arena.ErrLocked)
		wantIs(t, ma.Lock(soon(t)), context.DeadlineExceeded)
		wantIs(t, ma.Unlock(), arena.ErrNotOwner)
		wantIs(t, ma.MarkConsistent(), arena.ErrNotOwner)
		if ma.Holder() == 0 {
			t.Error("nobody holds the lock")
		}
		waits := async(func() error { return ma.Lock(ctx) })
		died(t, b, a)
		wantPeer(t, <-waits, b.Seat(), arena.ErrOwnerDied)
		testutil.NoError(t, ma.MarkConsistent())
		testutil.NoError(t, ma.Unlock())
		testutil.NoError(t, mc.Lock(ctx))
		died(t, c, a)
		wantPeer(t, ma.TryLock(), c.Seat(), arena.ErrOwnerDied)
		waits = async(func() error { return ma.Lock(ctx) })
		testutil.NoError(t, ma.Unlock()) // not made consistent
		wantPeer(t, <-waits, c.Seat(), arena.ErrNotRecoverable)
		wantPeer(t, ma.TryLock(), c.Seat(), arena.ErrNotRecoverable)
		wantIs(t, ma.Unlock(), arena.ErrNotOwner)
	})
}

func TestMutex_SurvivesTwoHolders(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b, c := f.first, f.join(), f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, a, b, c)
		testutil.NoError(t, arena.Mutex{vs[1]}.TryLock())
		died(t, b, a)
		wantPeer(t, arena.Mutex{vs[2]}.TryLock(), b.Seat(), arena.ErrOwnerDied)
		died(t, c, a)
		wantPeer(t, arena.Mutex{vs[0]}.TryLock(), c.Seat(), arena.ErrOwnerDied)
		again := f.join() // in a seat that was used before
		testutil.NoError(t, again.Import(vs[0].Handle()))
		v, err := again.OpenSync(vs[0].Handle(), arena.FormMutex)
		testutil.NoError(t, err)
		wantIs(t, arena.Mutex{v}.TryLock(), arena.ErrLocked)
	})
}

func TestRWMutex_HasReadersOrAWriter(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b, c := f.first, f.join(), f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormRWMutex}, a, b, c)
		ma, mb, mc := arena.RWMutex{vs[0]}, arena.RWMutex{vs[1]}, arena.RWMutex{vs[2]}
		testutil.NoError(t, ma.RLock(ctx))
		testutil.NoError(t, ma.RLock(ctx))
		testutil.NoError(t, mb.RLock(ctx))
		wantIs(t, mc.TryLock(), arena.ErrLocked)
		wantIs(t, mc.Lock(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, ma.TryRLock()) // a writer that gave up is in nobody's way
		for range 3 {
			testutil.NoError(t, ma.RUnlock())
		}
		wantIs(t, ma.RUnlock(), arena.ErrNotOwner)
		writes := async(func() error { return mc.Lock(ctx) })
		testutil.Eventually(t, func() bool { return errors.Is(ma.TryRLock(), arena.ErrLocked) || ma.RUnlock() != nil },
			"no writer waits")
		died(t, b, a) // and its read with it
		testutil.NoError(t, <-writes)
		reads := async(func() error { return ma.RLock(ctx) })
		wantIs(t, ma.TryRLock(), arena.ErrLocked)
		testutil.NoError(t, mc.Unlock())
		testutil.NoError(t, <-reads)
		testutil.NoError(t, ma.RUnlock())
		testutil.NoError(t, mc.Lock(ctx))
		died(t, c, a)
		wantPeer(t, ma.RLock(ctx), c.Seat(), arena.ErrOwnerDied)
		wantPeer(t, ma.Lock(ctx), c.Seat(), arena.ErrOwnerDied)
		testutil.NoError(t, ma.MarkConsistent())
		testutil.NoError(t, ma.Unlock())
		testutil.NoError(t, ma.RLock(ctx))
	})
}

// A writer that found a death and gives up leaves it for the next one to find.
func TestRWMutex_WriterThatGivesUpHidesNoDeath(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormRWMutex}, a, b)
		ma := arena.RWMutex{vs[0]}
		testutil.NoError(t, arena.Mutex{vs[1]}.TryLock()) // a writer that has not looked for readers yet
		testutil.NoError(t, a.ShareOf(vs[0]))
		died(t, b, a)
		wantIs(t, ma.Lock(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, ma.RUnlock())
		wantPeer(t, ma.TryLock(), b.Seat(), arena.ErrOwnerDied)
	})
}

func TestRecursiveMutex_OwnerLocksAgain(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, a, b)
		ma, mb := arena.RecursiveMutex{vs[0]}, arena.RecursiveMutex{vs[1]}
		testutil.NoError(t, ma.Lock(ctx, 1))
		testutil.NoError(t, ma.TryLock(1))
		wantIs(t, ma.TryLock(2), arena.ErrLocked)
		wantIs(t, mb.TryLock(1), arena.ErrLocked)
		wantIs(t, ma.Unlock(2), arena.ErrNotOwner)
		testutil.NoError(t, ma.Unlock(1))
		wantIs(t, mb.TryLock(3), arena.ErrLocked)
		testutil.NoError(t, ma.Unlock(1))
		wantIs(t, ma.Unlock(1), arena.ErrNotOwner)
		testutil.NoError(t, mb.Lock(ctx, 3))
		testutil.NoError(t, mb.Lock(ctx, 3))
		died(t, b, a)
		wantPeer(t, ma.Lock(ctx, 1), b.Seat(), arena.ErrOwnerDied)
		wantIs(t, ma.MarkConsistent(2), arena.ErrNotOwner)
		testutil.NoError(t, ma.MarkConsistent(1))
		testutil.NoError(t, ma.Unlock(1))
		testutil.NoError(t, ma.TryLock(2))
	})
}

func wantPermits(t *testing.T, m arena.Semaphore, want int) {
	t.Helper()
	if n, err := m.Permits(); n != want || err != nil {
		t.Errorf("%d permits, %v, want %d", n, err, want)
	}
}

func TestSemaphore_Counts(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormSemaphore, Limit: 2, Bounded: true}, a, b)
		ma, mb := arena.Semaphore{vs[0]}, arena.Semaphore{vs[1]}
		wantIs(t, ma.Release(), arena.ErrReleased)
		testutil.NoError(t, ma.Acquire(ctx))
		testutil.NoError(t, mb.Acquire(ctx))
		wantIs(t, ma.TryAcquire(), arena.ErrLocked)
		wantIs(t, ma.Acquire(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, ma.Release())
		testutil.NoError(t, ma.Release()) // for the other one
		wantIs(t, mb.Release(), arena.ErrReleased)
		testutil.NoError(t, mb.Acquire(ctx))
		testutil.NoError(t, mb.Acquire(ctx))
		waits := async(func() error { return ma.Acquire(ctx) })
		died(t, b, a)
		testutil.NoError(t, <-waits)
		wantPermits(t, ma, 1)
	})
}

// An Acquire with a deadline in the past finds a permit that is there, also in the middle of
// another process's operation.
func TestSemaphore_ADeadlineInThePastFindsAPermit(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		vs := newSync(t, arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1}, f.first, f.join())
		testutil.NoError(t, vs[1].LockCell())
		past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		acquired := async(func() error { return arena.Semaphore{vs[0]}.Acquire(past) })
		time.AfterFunc(2*time.Millisecond, vs[1].UnlockCell)
		testutil.NoError(t, <-acquired)
		wantIs(t, arena.Semaphore{vs[0]}.Acquire(past), context.DeadlineExceeded)
	})
}

func TestSemaphore_SignalIsNotHeardTwice(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1}, a, b)
		ma, mb := arena.Semaphore{vs[0]}, arena.Semaphore{vs[1]}
		for range 4 {
			testutil.NoError(t, ma.Release())
		}
		for range 5 {
			testutil.NoError(t, mb.Acquire(ctx))
		}
		wantPermits(t, ma, 0)
		died(t, b, a)
		wantPermits(t, ma, 1)
		testutil.NoError(t, ma.Acquire(ctx))
		wantIs(t, ma.TryAcquire(), arena.ErrLocked)
	})
}

func TestSemaphore_UnderContention(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		o := arena.SyncOptions{Form: arena.FormSemaphore, Limit: 2, Bounded: true}
		vs := newSync(t, o, f.first, f.join(), f.join())
		var inside atomic.Int32
		var wg sync.WaitGroup
		for _, v := range vs {
			for range 2 {
				wg.Go(func() {
					m := arena.Semaphore{v}
					for range 200 {
						if err := m.Acquire(ctx); err != nil {
							t.Error(err)
							return
						}
						if inside.Add(1) > 2 {
							t.Error("more than two have a permit")
						}
						inside.Add(-1)
						if err := m.Release(); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		wantPermits(t, arena.Semaphore{vs[0]}, 2)
	})
}

// waitIn waits in c with m, which it locks before and unlocks afterwards.
func waitIn(ctx context.Context, c arena.Cond, m arena.Mutex) error {
	if err := m.Lock(ctx); err != nil {
		return err
	}
	_, err := c.Wait(ctx, m)
	return errors.Join(err, m.Unlock())
}

func TestCond_WakesAsManyAsItIsTold(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		ds := []*arena.Domain{f.first, f.join(), f.join()}
		cs := newSync(t, arena.SyncOptions{Form: arena.FormCond}, ds...)
		ms := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, ds...)
		c, m := arena.Cond{cs[0]}, arena.Mutex{ms[0]}
		_, err := c.Wait(ctx, m)
		wantIs(t, err, arena.ErrNotOwner)
		if n := c.Notify(1); n != 0 {
			t.Errorf("%d woke, nobody waits", n)
		}
		wantIs(t, waitIn(soon(t), c, m), context.DeadlineExceeded)
		var woken atomic.Int32
		var all []<-chan error
		for i := range 6 {
			all = append(all, async(func() error {
				defer woken.Add(1)
				return waitIn(ctx, arena.Cond{cs[i%3]}, arena.Mutex{ms[i%3]})
			}))
		}
		testutil.Eventually(t, func() bool { return c.Waiting() == 6 }, "not all wait")
		if n := c.Notify(2); n != 2 {
			t.Errorf("%d woke, want 2", n)
		}
		testutil.Eventually(t, func() bool { return woken.Load() == 2 }, "two do not wake")
		if c.Notify(1<<20) != 4 {
			t.Error("the other four do not wait")
		}
		for _, w := range all {
			testutil.NoError(t, <-w)
		}
	})
}

func TestCond_DeadWaiterSwallowsNoNotification(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		cs := newSync(t, arena.SyncOptions{Form: arena.FormCond}, a, b)
		ms := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, a, b)
		forgotten, forget := context.WithCancel(ctx) // a goroutine outlives its participant
		dead := async(func() error { return waitIn(forgotten, arena.Cond{cs[1]}, arena.Mutex{ms[1]}) })
		c := arena.Cond{cs[0]}
		testutil.Eventually(t, func() bool { return c.Waiting() == 1 }, "nobody waits")
		w := async(func() error { return waitIn(ctx, c, arena.Mutex{ms[0]}) })
		testutil.Eventually(t, func() bool { return c.Waiting() == 2 }, "not both wait")
		testutil.NoError(t, b.Abandon())
		// b is dead. Where nobody knows, the ticket may be its; where the watcher was quicker, all
		// are served by now.
		if n := c.Notify(1); n != 1 && c.Waiting() != 0 {
			t.Errorf("%d woke, %d wait", n, c.Waiting())
		}
		testutil.Eventually(t, func() bool { reap(t, a); return a.Stats().Reaped == 1 }, "nobody reaped")
		testutil.NoError(t, <-w)
		forget()
		<-dead
	})
}

func TestCond_WaitersLearnThatTheHolderDied(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		cs := newSync(t, arena.SyncOptions{Form: arena.FormCond}, a, b)
		ms := newSync(t, arena.SyncOptions{Form: arena.FormMutex}, a, b)
		c, m := arena.Cond{cs[0]}, arena.Mutex{ms[0]}
		w := async(func() error { return waitIn(ctx, c, m) })
		testutil.Eventually(t, func() bool { return c.Waiting() == 1 }, "nobody waits")
		testutil.NoError(t, arena.Mutex{ms[1]}.Lock(ctx))
		died(t, b, a)
		wantPeer(t, <-w, b.Seat(), arena.ErrOwnerDied)
	})
}

func TestEvent_WakesEverybody(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		vs := newSync(t, arena.SyncOptions{Form: arena.FormEvent}, f.first, f.join())
		e := arena.Event{vs[0]}
		wantIs(t, e.Wait(soon(t)), context.DeadlineExceeded)
		var all []<-chan error
		for i := range 4 {
			all = append(all, async(func() error { return arena.Event{vs[i%2]}.Wait(ctx) }))
		}
		e.Set()
		for _, w := range all {
			testutil.NoError(t, <-w)
		}
		e.Set()
		testutil.NoError(t, e.Wait(ctx))
		e.Clear()
		e.Clear()
		if e.IsSet() {
			t.Error("it is set after Clear")
		}
	})
}

func TestBarrier_LetsAllGoTogether(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		vs := newSync(t, arena.SyncOptions{Form: arena.FormBarrier, Limit: 3}, f.first, f.join(), f.join())
		var acted atomic.Int32
		var wg sync.WaitGroup
		const turns = 100
		for _, v := range vs {
			wg.Go(func() {
				for turn := range int32(turns) {
					_, err := arena.Barrier{v}.Wait(ctx, func() error { acted.Add(1); return nil })
					if n := acted.Load(); err != nil || n != turn+1 && n != turn+2 {
						t.Errorf("turn %d: %v, %d actions", turn, err, n)
						return
					}
				}
			})
		}
		wg.Wait()
		if acted.Load() != turns {
			t.Errorf("%d actions in %d turns", acted.Load(), turns)
		}
	})
}

// No nap lasts to its end where nobody dies: these would last for an hour.
func TestBarrier_EndOfATurnEndsTheNaps(t *testing.T) {
	defer arena.NapAtBarriers(time.Hour)()
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		const turns = 20
		vs := newSync(t, arena.SyncOptions{Form: arena.FormBarrier, Limit: 3}, f.first, f.join(), f.join())
		var all []<-chan error
		for _, v := range vs[1:] {
			all = append(all, async(func() (err error) {
				for turn := 0; turn < turns && err == nil; turn++ {
					_, err = arena.Barrier{v}.Wait(testutil.Context(t), nil)
				}
				return err
			}))
		}
		last, napped := arena.Barrier{vs[0]}, 0
		for range turns {
			testutil.Eventually(t, func() bool { return last.Waiting() == 2 }, "two do not come")
			for range 1000 {
				if last.Napped() {
					napped++
					break
				}
				runtime.Gosched()
			}
			_, err := last.Wait(testutil.Context(t), nil)
			testutil.NoError(t, err)
		}
		for _, a := range all {
			testutil.NoError(t, <-a)
		}
		if napped == 0 {
			t.Error("nobody has napped")
		}
	})
}

func TestBarrier_Breaks(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, arena.SyncOptions{Form: arena.FormBarrier, Limit: 2}, a, b)
		ba, bb := arena.Barrier{vs[0]}, arena.Barrier{vs[1]}
		wait := func(b arena.Barrier, action func() error) <-chan error {
			return async(func() error { _, err := b.Wait(ctx, action); return err })
		}
		there := func(n int) { testutil.Eventually(t, func() bool { return ba.Waiting() == n }, "nobody comes") }

		w := wait(bb, nil)
		there(1)
		ba.Abort()
		wantIs(t, <-w, arena.ErrBroken)
		wantIs(t, <-wait(ba, nil), arena.ErrBroken)
		if !bb.Broken() || bb.Waiting() != 0 {
			t.Error("an aborted barrier is not broken")
		}
		ba.Reset()
		w = wait(bb, nil)
		there(1)
		ba.Reset()
		wantIs(t, <-w, arena.ErrBroken)
		if ba.Broken() {
			t.Error("a reset barrier is broken")
		}

		_, err := ba.Wait(soon(t), nil)
		wantIs(t, err, context.DeadlineExceeded)
		wantIs(t, <-wait(bb, nil), arena.ErrBroken)

		ba.Reset()
		w = wait(bb, nil)
		there(1)
		failed := errors.New("failed")
		wantIs(t, <-wait(ba, func() error { return failed }), arena.ErrBroken, failed)
		wantIs(t, <-w, arena.ErrBroken)

		ba.Reset()
		w = wait(bb, nil)
		there(1)
		func() {
			defer func() { recover() }()
			ba.Wait(ctx, func() error { panic("at the disco") })
		}()
		wantIs(t, <-w, arena.ErrBroken)

		ba.Reset()
		w = wait(ba, nil)
		there(1)
		died(t, b, a)
		wantPeer(t, <-w, b.Seat(), arena.ErrBroken)
		wantPeer(t, <-wait(ba, nil), b.Seat(), arena.ErrBroken)
		c := f.join() // in the seat of the dead
		testutil.NoError(t, c.Import(vs[0].Handle()))
		v, err := c.OpenSync(vs[0].Handle(), arena.FormBarrier)
		testutil.NoError(t, err)
		wantPeer(t, <-wait(arena.Barrier{v}, nil), b.Seat(), arena.ErrBroken)
		ba.Reset()
		w = wait(ba, nil)
		testutil.NoError(t, <-wait(arena.Barrier{v}, nil))
		testutil.NoError(t, <-w)
		testutil.NoError(t, c.Close()) // who leaves in order breaks nothing
		if ba.Broken() {
			t.Error("a member left and the barrier is broken")
		}
	})
}

func TestSync_ClosedViewsWaitForNothing(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		waits := map[arena.Form]func(s *arena.Sync) error{
			arena.FormMutex:     func(s *arena.Sync) error { return arena.Mutex{s}.Lock(ctx) },
			arena.FormRWMutex:   func(s *arena.Sync) error { return arena.RWMutex{s}.RLock(ctx) },
			arena.FormSemaphore: func(s *arena.Sync) error { return arena.Semaphore{s}.Acquire(ctx) },
			arena.FormEvent:     func(s *arena.Sync) error { return arena.Event{s}.Wait(ctx) },
			arena.FormBarrier:   func(s *arena.Sync) error { _, err := arena.Barrier{s}.Wait(ctx, nil); return err },
		}
		for form, wait := range waits {
			vs := newSync(t, arena.SyncOptions{Form: form, Limit: 2}, f.first, f.join())
			for range 2 {
				switch form {
				case arena.FormMutex, arena.FormRWMutex:
					arena.Mutex{vs[0]}.TryLock()
				case arena.FormSemaphore:
					arena.Semaphore{vs[0]}.TryAcquire()
				}
			}
			w := async(func() error { return wait(vs[1]) })
			vs[1].Close()
			wantIs(t, <-w, arena.ErrClosed)
		}
	})
}

func TestSync_OpensNothingElse(t *testing.T) {
	d := newDomain(t, 8<<20)
	s, err := d.NewSync(arena.SyncOptions{Form: arena.FormMutex})
	testutil.NoError(t, err)
	_, err = d.OpenSync(s.Handle(), arena.FormSemaphore)
	wantIs(t, err, arena.ErrCorrupt)
	_, err = d.OpenSync(alloc(t, d, 100, ""), arena.FormMutex)
	wantIs(t, err, arena.ErrCorrupt)
	_, err = d.OpenSync(s.Handle()+1<<40, arena.FormMutex)
	wantIs(t, err, arena.ErrStale)
	if _, err := d.NewSync(arena.SyncOptions{Form: arena.FormBarrier}); err == nil {
		t.Error("there is a barrier for nobody")
	}
	if _, err := d.NewSync(arena.SyncOptions{Form: arena.FormSemaphore, Limit: 1 << 20}); err == nil {
		t.Error("there is a semaphore of a million permits")
	}
}
