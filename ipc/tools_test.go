package ipc_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Each turn has one action, of the last one to come, before anybody goes on; and each place in it
// is one caller's.
func TestBarrier_ActionIsTheLastOnes(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		const parties, turns = 3, 20
		ctx := testutil.Context(t)
		b, err := ipc.NewBarrier(parties)
		testutil.NoError(t, err)
		defer b.Close()
		var acted atomic.Int32 // the race detector does not see what goes on in shared memory
		b.Action = func() error { acted.Add(1); return nil }
		for turn := 1; turn <= turns; turn++ {
			var places [parties]int
			var wg sync.WaitGroup
			for i := range parties {
				wg.Go(func() {
					before, err := b.Wait(ctx)
					if n := acted.Load(); err != nil || int(n) != turn {
						t.Errorf("turn %d: %d actions, %v", turn, n, err)
					}
					places[i] = before
				})
			}
			wg.Wait()
			var seen [parties]int
			for _, p := range places {
				seen[p]++
			}
			if seen != [parties]int{1, 1, 1} {
				t.Fatalf("turn %d: places %v", turn, places)
			}
		}
	})
}

func TestBarrier_IsBrokenUntilItIsReset(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		b, err := ipc.NewBarrier(2)
		testutil.NoError(t, err)
		defer b.Close()
		met := make(chan error, 2)
		meet := func() { _, err := b.Wait(ctx); met <- err }
		failure := errors.New("failure")
		for name, breaks := range map[string]func(){
			"abort": func() { testutil.NoError(t, b.Abort()) },
			"reset": func() { testutil.NoError(t, b.Reset()) },
			"an action that fails": func() {
				last := *b
				last.Action = func() error { return failure }
				_, err := last.Wait(ctx)
				testutil.ErrorIs(t, err, ipc.ErrBroken, failure)
			},
		} {
			go meet()
			testutil.Eventually(t, func() bool { return b.Waiting() == 1 }, "nobody waits")
			breaks()
			testutil.ErrorIs(t, <-met, ipc.ErrBroken)
			if b.Broken() != (name != "reset") {
				t.Errorf("after %s it is broken: %v", name, b.Broken())
			}
			if b.Broken() {
				_, err := b.Wait(ctx)
				testutil.ErrorIs(t, err, ipc.ErrBroken)
			}
			testutil.NoError(t, b.Reset())
			go meet()
			meet()
			testutil.NoError(t, errors.Join(<-met, <-met))
		}
	})
}

func TestEvent_IsSetUntilItIsCleared(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		e, err := ipc.NewEvent()
		testutil.NoError(t, err)
		for range 2 {
			if e.IsSet() {
				t.Error("it is set before anybody sets it")
			}
			testutil.ErrorIs(t, e.Wait(soon(t)), context.DeadlineExceeded)
			testutil.NoError(t, errors.Join(e.Set(), e.Set()))
			if !e.IsSet() {
				t.Error("it is not set")
			}
			testutil.NoError(t, e.Wait(testutil.Context(t)))
			testutil.NoError(t, e.Clear())
		}
		testutil.NoError(t, errors.Join(e.Set(), e.Close()))
		testutil.ErrorIs(t, e.Set(), ipc.ErrClosed)
		testutil.ErrorIs(t, e.Clear(), ipc.ErrClosed)
		if e.IsSet() {
			t.Error("a closed one is set")
		}
	})
}

// A semaphore without a bound is a signal as well.
func TestSemaphore_CountsItsPermits(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		s, err := ipc.NewSemaphore(0)
		testutil.NoError(t, err)
		defer s.Close()
		permits := func(want int) {
			t.Helper()
			if n, err := s.Permits(); n != want || err != nil {
				t.Errorf("%d permits, want %d, %v", n, want, err)
			}
		}
		testutil.ErrorIs(t, s.TryAcquire(), ipc.ErrLocked)
		heard := make(chan error)
		go func() { heard <- s.Acquire(ctx) }()
		testutil.NoError(t, s.Release())
		testutil.NoError(t, <-heard)
		permits(0)
		for range 3 { // one for the permit that was heard, and two more than at first
			testutil.NoError(t, s.Release())
		}
		permits(3)
		testutil.NoError(t, s.TryAcquire())
		permits(2)
	})
}

func TestValue_IsSwappedIfItIsTheOldOne(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		v, err := ipc.NewValue[uint8](250)
		testutil.NoError(t, err)
		defer v.Close()
		swap := func(old, n uint8, want bool) {
			t.Helper()
			if swapped, err := v.CompareAndSwap(old, n); swapped != want || err != nil {
				t.Errorf("from %d to %d: %v, %v", old, n, swapped, err)
			}
		}
		swap(251, 9, false)
		swap(250, 255, true)
		if sum, err := v.Add(1); sum != 0 || err != nil {
			t.Errorf("255 + 1 is %d, %v", sum, err)
		}
		testutil.NoError(t, v.Store(7))
		if n, err := v.Load(); n != 7 || err != nil {
			t.Error(n, err)
		}
	})
}

func TestSemaphore_RefusesCountsThatThereCannotBe(t *testing.T) {
	local(t)
	for what, create := range map[string]func(n int) error{
		"barrier":           func(n int) error { _, err := ipc.NewBarrier(n); return err },
		"semaphore":         func(n int) error { _, err := ipc.NewSemaphore(n); return err },
		"bounded semaphore": func(n int) error { _, err := ipc.NewBoundedSemaphore(n); return err },
		"array":             func(n int) error { _, err := ipc.NewArray[int8](n); return err },
	} {
		for _, n := range []int{-1, 1 << 50} {
			if err := create(n); !errors.Is(err, ipc.ErrSize) {
				t.Errorf("%s of %d: %v", what, n, err)
			}
		}
	}
	_, err := ipc.NewBarrier(0)
	testutil.ErrorIs(t, err, ipc.ErrSize)
}

// A waiter for a condition that does not come holds the lock afterwards; without the lock there is
// no waiting.
func TestCond_GivesUpWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		c, err := ipc.NewCond(nil)
		testutil.NoError(t, err)
		defer c.Close()
		never := func() bool { return false }
		testutil.ErrorIs(t, c.WaitFor(t.Context(), never), ipc.ErrNotOwner)
		testutil.NoError(t, c.Mutex().TryLock())
		testutil.ErrorIs(t, c.WaitFor(soon(t), never), context.DeadlineExceeded)
		testutil.NoError(t, c.WaitFor(soon(t), func() bool { return true }))
		testutil.NoError(t, c.Mutex().Unlock())
	})
}
