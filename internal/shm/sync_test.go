package shm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/test/testutil"
)

// newSync makes a Sync in the first participant and views of it in all the others.
func newSync(t *testing.T, opts shm.SyncOptions, ds ...*shm.Domain) []*shm.Sync {
	t.Helper()
	s, err := ds[0].NewSync(opts)
	testutil.NoError(t, err)
	views := []*shm.Sync{s}
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
	var p *shm.PeerError
	if !errors.As(err, &p) || p.Seat != seat || p.PID == 0 || !errors.Is(err, cause) {
		t.Errorf("the error is %v, want that participant %d died and %v", err, seat, cause)
	}
}

// died lets a participant die and reaps it.
func died(t *testing.T, d, by *shm.Domain) {
	t.Helper()
	before := by.Stats().Reaped
	testutil.NoError(t, d.Abandon())
	testutil.Eventually(t, func() bool { reap(t, by); return by.Stats().Reaped > before }, "nobody reaped")
}

func TestMutex_Excludes(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		ds := []*shm.Domain{f.first, f.join(), f.join()}
		vs := newSync(t, shm.SyncOptions{Form: shm.FormMutex, Bytes: 8}, ds...)
		var wg sync.WaitGroup
		const each = 300
		for _, v := range vs {
			for range 2 {
				wg.Go(func() {
					m := shm.Mutex{v}
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
		vs := newSync(t, shm.SyncOptions{Form: shm.FormMutex}, a, b, c)
		ma, mb, mc := shm.Mutex{vs[0]}, shm.Mutex{vs[1]}, shm.Mutex{vs[2]}
		testutil.NoError(t, mb.Lock(ctx))
		wantIs(t, ma.TryLock(), shm.ErrLocked)
		wantIs(t, ma.Lock(soon(t)), context.DeadlineExceeded)
		wantIs(t, ma.Unlock(), shm.ErrNotOwner)
		wantIs(t, ma.MarkConsistent(), shm.ErrNotOwner)
		if ma.Holder() == 0 {
			t.Error("nobody holds the lock")
		}
		waits := async(func() error { return ma.Lock(ctx) })
		died(t, b, a)
		wantPeer(t, <-waits, b.Seat(), shm.ErrOwnerDied)
		testutil.NoError(t, ma.MarkConsistent())
		testutil.NoError(t, ma.Unlock())
		testutil.NoError(t, mc.Lock(ctx))
		died(t, c, a)
		wantPeer(t, ma.TryLock(), c.Seat(), shm.ErrOwnerDied)
		waits = async(func() error { return ma.Lock(ctx) })
		testutil.NoError(t, ma.Unlock()) // not made consistent
		wantPeer(t, <-waits, c.Seat(), shm.ErrNotRecoverable)
		wantPeer(t, ma.TryLock(), c.Seat(), shm.ErrNotRecoverable)
		wantIs(t, ma.Unlock(), shm.ErrNotOwner)
	})
}

func TestMutex_SurvivesTwoHolders(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b, c := f.first, f.join(), f.join()
		vs := newSync(t, shm.SyncOptions{Form: shm.FormMutex}, a, b, c)
		testutil.NoError(t, shm.Mutex{vs[1]}.TryLock())
		died(t, b, a)
		wantPeer(t, shm.Mutex{vs[2]}.TryLock(), b.Seat(), shm.ErrOwnerDied)
		died(t, c, a)
		wantPeer(t, shm.Mutex{vs[0]}.TryLock(), c.Seat(), shm.ErrOwnerDied)
		again := f.join() // in a seat that was used before
		testutil.NoError(t, again.Import(vs[0].Handle()))
		v, err := again.OpenSync(vs[0].Handle(), shm.FormMutex)
		testutil.NoError(t, err)
		wantIs(t, shm.Mutex{v}.TryLock(), shm.ErrLocked)
	})
}

func TestRWMutex_HasReadersOrAWriter(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b, c := f.first, f.join(), f.join()
		vs := newSync(t, shm.SyncOptions{Form: shm.FormRWMutex}, a, b, c)
		ma, mb, mc := shm.RWMutex{vs[0]}, shm.RWMutex{vs[1]}, shm.RWMutex{vs[2]}
		testutil.NoError(t, ma.RLock(ctx))
		testutil.NoError(t, ma.RLock(ctx))
		testutil.NoError(t, mb.RLock(ctx))
		wantIs(t, mc.TryLock(), shm.ErrLocked)
		wantIs(t, mc.Lock(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, ma.TryRLock()) // a writer that gave up is in nobody's way
		for range 3 {
			testutil.NoError(t, ma.RUnlock())
		}
		wantIs(t, ma.RUnlock(), shm.ErrNotOwner)
		writes := async(func() error { return mc.Lock(ctx) })
		testutil.Eventually(t, func() bool { return errors.Is(ma.TryRLock(), shm.ErrLocked) || ma.RUnlock() != nil },
			"no writer waits")
		died(t, b, a) // and its read with it
		testutil.NoError(t, <-writes)
		reads := async(func() error { return ma.RLock(ctx) })
		wantIs(t, ma.TryRLock(), shm.ErrLocked)
		testutil.NoError(t, mc.Unlock())
		testutil.NoError(t, <-reads)
		testutil.NoError(t, ma.RUnlock())
		testutil.NoError(t, mc.Lock(ctx))
		died(t, c, a)
		wantPeer(t, ma.RLock(ctx), c.Seat(), shm.ErrOwnerDied)
		wantPeer(t, ma.Lock(ctx), c.Seat(), shm.ErrOwnerDied)
		testutil.NoError(t, ma.MarkConsistent())
		testutil.NoError(t, ma.Unlock())
		testutil.NoError(t, ma.RLock(ctx))
	})
}

// A writer that found a death and gives up leaves it for the next one to find.
func TestRWMutex_WriterThatGivesUpHidesNoDeath(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		vs := newSync(t, shm.SyncOptions{Form: shm.FormRWMutex}, a, b)
		ma := shm.RWMutex{vs[0]}
		testutil.NoError(t, shm.Mutex{vs[1]}.TryLock()) // a writer that has not looked for readers yet
		testutil.NoError(t, a.ShareOf(vs[0]))
		died(t, b, a)
		wantIs(t, ma.Lock(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, ma.RUnlock())
		wantPeer(t, ma.TryLock(), b.Seat(), shm.ErrOwnerDied)
	})
}

func TestRecursiveMutex_OwnerLocksAgain(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, shm.SyncOptions{Form: shm.FormMutex}, a, b)
		ma, mb := shm.RecursiveMutex{vs[0]}, shm.RecursiveMutex{vs[1]}
		testutil.NoError(t, ma.Lock(ctx, 1))
		testutil.NoError(t, ma.TryLock(1))
		wantIs(t, ma.TryLock(2), shm.ErrLocked)
		wantIs(t, mb.TryLock(1), shm.ErrLocked)
		wantIs(t, ma.Unlock(2), shm.ErrNotOwner)
		testutil.NoError(t, ma.Unlock(1))
		wantIs(t, mb.TryLock(3), shm.ErrLocked)
		testutil.NoError(t, ma.Unlock(1))
		wantIs(t, ma.Unlock(1), shm.ErrNotOwner)
		testutil.NoError(t, mb.Lock(ctx, 3))
		testutil.NoError(t, mb.Lock(ctx, 3))
		died(t, b, a)
		wantPeer(t, ma.Lock(ctx, 1), b.Seat(), shm.ErrOwnerDied)
		wantIs(t, ma.MarkConsistent(2), shm.ErrNotOwner)
		testutil.NoError(t, ma.MarkConsistent(1))
		testutil.NoError(t, ma.Unlock(1))
		testutil.NoError(t, ma.TryLock(2))
	})
}

func wantPermits(t *testing.T, m shm.Semaphore, want int) {
	t.Helper()
	if n, err := m.Permits(); n != want || err != nil {
		t.Errorf("%d permits, %v, want %d", n, err, want)
	}
}

func TestSemaphore_Counts(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, shm.SyncOptions{Form: shm.FormSemaphore, Limit: 2, Bounded: true}, a, b)
		ma, mb := shm.Semaphore{vs[0]}, shm.Semaphore{vs[1]}
		wantIs(t, ma.Release(), shm.ErrReleased)
		testutil.NoError(t, ma.Acquire(ctx))
		testutil.NoError(t, mb.Acquire(ctx))
		wantIs(t, ma.TryAcquire(), shm.ErrLocked)
		wantIs(t, ma.Acquire(soon(t)), context.DeadlineExceeded)
		testutil.NoError(t, ma.Release())
		testutil.NoError(t, ma.Release()) // for the other one
		wantIs(t, mb.Release(), shm.ErrReleased)
		testutil.NoError(t, mb.Acquire(ctx))
		testutil.NoError(t, mb.Acquire(ctx))
		waits := async(func() error { return ma.Acquire(ctx) })
		died(t, b, a)
		testutil.NoError(t, <-waits)
		wantPermits(t, ma, 1)
	})
}

func TestSemaphore_SignalIsNotHeardTwice(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		vs := newSync(t, shm.SyncOptions{Form: shm.FormSemaphore, Limit: 1}, a, b)
		ma, mb := shm.Semaphore{vs[0]}, shm.Semaphore{vs[1]}
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
		wantIs(t, ma.TryAcquire(), shm.ErrLocked)
	})
}

func TestSemaphore_UnderContention(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		vs := newSync(t, shm.SyncOptions{Form: shm.FormSemaphore, Limit: 2, Bounded: true}, f.first, f.join(), f.join())
		var inside atomic.Int32
		var wg sync.WaitGroup
		for _, v := range vs {
			for range 2 {
				wg.Go(func() {
					m := shm.Semaphore{v}
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
		wantPermits(t, shm.Semaphore{vs[0]}, 2)
	})
}

// waitIn waits in c with m, which it locks before and unlocks afterwards.
func waitIn(ctx context.Context, c shm.Cond, m shm.Mutex) error {
	if err := m.Lock(ctx); err != nil {
		return err
	}
	_, err := c.Wait(ctx, m)
	return errors.Join(err, m.Unlock())
}

func TestCond_WakesAsManyAsItIsTold(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		ds := []*shm.Domain{f.first, f.join(), f.join()}
		cs := newSync(t, shm.SyncOptions{Form: shm.FormCond}, ds...)
		ms := newSync(t, shm.SyncOptions{Form: shm.FormMutex}, ds...)
		c, m := shm.Cond{cs[0]}, shm.Mutex{ms[0]}
		_, err := c.Wait(ctx, m)
		wantIs(t, err, shm.ErrNotOwner)
		if n := c.Notify(1); n != 0 {
			t.Errorf("%d woke, nobody waits", n)
		}
		wantIs(t, waitIn(soon(t), c, m), context.DeadlineExceeded)
		var woken atomic.Int32
		var all []<-chan error
		for i := range 6 {
			all = append(all, async(func() error {
				defer woken.Add(1)
				return waitIn(ctx, shm.Cond{cs[i%3]}, shm.Mutex{ms[i%3]})
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
		cs := newSync(t, shm.SyncOptions{Form: shm.FormCond}, a, b)
		ms := newSync(t, shm.SyncOptions{Form: shm.FormMutex}, a, b)
		forgotten, forget := context.WithCancel(ctx) // a goroutine outlives its participant
		dead := async(func() error { return waitIn(forgotten, shm.Cond{cs[1]}, shm.Mutex{ms[1]}) })
		c := shm.Cond{cs[0]}
		testutil.Eventually(t, func() bool { return c.Waiting() == 1 }, "nobody waits")
		w := async(func() error { return waitIn(ctx, c, shm.Mutex{ms[0]}) })
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
		cs := newSync(t, shm.SyncOptions{Form: shm.FormCond}, a, b)
		ms := newSync(t, shm.SyncOptions{Form: shm.FormMutex}, a, b)
		c, m := shm.Cond{cs[0]}, shm.Mutex{ms[0]}
		w := async(func() error { return waitIn(ctx, c, m) })
		testutil.Eventually(t, func() bool { return c.Waiting() == 1 }, "nobody waits")
		testutil.NoError(t, shm.Mutex{ms[1]}.Lock(ctx))
		died(t, b, a)
		wantPeer(t, <-w, b.Seat(), shm.ErrOwnerDied)
	})
}

func TestEvent_WakesEverybody(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		vs := newSync(t, shm.SyncOptions{Form: shm.FormEvent}, f.first, f.join())
		e := shm.Event{vs[0]}
		wantIs(t, e.Wait(soon(t)), context.DeadlineExceeded)
		var all []<-chan error
		for i := range 4 {
			all = append(all, async(func() error { return shm.Event{vs[i%2]}.Wait(ctx) }))
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
		vs := newSync(t, shm.SyncOptions{Form: shm.FormBarrier, Limit: 3}, f.first, f.join(), f.join())
		var acted atomic.Int32
		var wg sync.WaitGroup
		const turns = 100
		for _, v := range vs {
			wg.Go(func() {
				for turn := range int32(turns) {
					_, err := shm.Barrier{v}.Wait(ctx, func() error { acted.Add(1); return nil })
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
	defer shm.NapAtBarriers(time.Hour)()
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		const turns = 20
		vs := newSync(t, shm.SyncOptions{Form: shm.FormBarrier, Limit: 3}, f.first, f.join(), f.join())
		var all []<-chan error
		for _, v := range vs[1:] {
			all = append(all, async(func() (err error) {
				for turn := 0; turn < turns && err == nil; turn++ {
					_, err = shm.Barrier{v}.Wait(testutil.Context(t), nil)
				}
				return err
			}))
		}
		last, napped := shm.Barrier{vs[0]}, 0
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
		vs := newSync(t, shm.SyncOptions{Form: shm.FormBarrier, Limit: 2}, a, b)
		ba, bb := shm.Barrier{vs[0]}, shm.Barrier{vs[1]}
		wait := func(b shm.Barrier, action func() error) <-chan error {
			return async(func() error { _, err := b.Wait(ctx, action); return err })
		}
		there := func(n int) { testutil.Eventually(t, func() bool { return ba.Waiting() == n }, "nobody comes") }

		w := wait(bb, nil)
		there(1)
		ba.Abort()
		wantIs(t, <-w, shm.ErrBroken)
		wantIs(t, <-wait(ba, nil), shm.ErrBroken)
		if !bb.Broken() || bb.Waiting() != 0 {
			t.Error("an aborted barrier is not broken")
		}
		ba.Reset()
		w = wait(bb, nil)
		there(1)
		ba.Reset()
		wantIs(t, <-w, shm.ErrBroken)
		if ba.Broken() {
			t.Error("a reset barrier is broken")
		}

		_, err := ba.Wait(soon(t), nil)
		wantIs(t, err, context.DeadlineExceeded)
		wantIs(t, <-wait(bb, nil), shm.ErrBroken)

		ba.Reset()
		w = wait(bb, nil)
		there(1)
		failed := errors.New("failed")
		wantIs(t, <-wait(ba, func() error { return failed }), shm.ErrBroken, failed)
		wantIs(t, <-w, shm.ErrBroken)

		ba.Reset()
		w = wait(bb, nil)
		there(1)
		func() {
			defer func() { recover() }()
			ba.Wait(ctx, func() error { panic("at the disco") })
		}()
		wantIs(t, <-w, shm.ErrBroken)

		ba.Reset()
		w = wait(ba, nil)
		there(1)
		died(t, b, a)
		wantPeer(t, <-w, b.Seat(), shm.ErrBroken)
		wantPeer(t, <-wait(ba, nil), b.Seat(), shm.ErrBroken)
		c := f.join() // in the seat of the dead
		testutil.NoError(t, c.Import(vs[0].Handle()))
		v, err := c.OpenSync(vs[0].Handle(), shm.FormBarrier)
		testutil.NoError(t, err)
		wantPeer(t, <-wait(shm.Barrier{v}, nil), b.Seat(), shm.ErrBroken)
		ba.Reset()
		w = wait(ba, nil)
		testutil.NoError(t, <-wait(shm.Barrier{v}, nil))
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
		waits := map[shm.Form]func(s *shm.Sync) error{
			shm.FormMutex:     func(s *shm.Sync) error { return shm.Mutex{s}.Lock(ctx) },
			shm.FormRWMutex:   func(s *shm.Sync) error { return shm.RWMutex{s}.RLock(ctx) },
			shm.FormSemaphore: func(s *shm.Sync) error { return shm.Semaphore{s}.Acquire(ctx) },
			shm.FormEvent:     func(s *shm.Sync) error { return shm.Event{s}.Wait(ctx) },
			shm.FormBarrier:   func(s *shm.Sync) error { _, err := shm.Barrier{s}.Wait(ctx, nil); return err },
		}
		for form, wait := range waits {
			vs := newSync(t, shm.SyncOptions{Form: form, Limit: 2}, f.first, f.join())
			for range 2 {
				switch form {
				case shm.FormMutex, shm.FormRWMutex:
					shm.Mutex{vs[0]}.TryLock()
				case shm.FormSemaphore:
					shm.Semaphore{vs[0]}.TryAcquire()
				}
			}
			w := async(func() error { return wait(vs[1]) })
			vs[1].Close()
			wantIs(t, <-w, shm.ErrClosed)
		}
	})
}

func TestSync_OpensNothingElse(t *testing.T) {
	d := newDomain(t, 8<<20)
	s, err := d.NewSync(shm.SyncOptions{Form: shm.FormMutex})
	testutil.NoError(t, err)
	_, err = d.OpenSync(s.Handle(), shm.FormSemaphore)
	wantIs(t, err, shm.ErrCorrupt)
	_, err = d.OpenSync(alloc(t, d, 100, ""), shm.FormMutex)
	wantIs(t, err, shm.ErrCorrupt)
	_, err = d.OpenSync(s.Handle()+1<<40, shm.FormMutex)
	wantIs(t, err, shm.ErrStale)
	if _, err := d.NewSync(shm.SyncOptions{Form: shm.FormBarrier}); err == nil {
		t.Error("there is a barrier for nobody")
	}
	if _, err := d.NewSync(shm.SyncOptions{Form: shm.FormSemaphore, Limit: 1 << 20}); err == nil {
		t.Error("there is a semaphore of a million permits")
	}
}
