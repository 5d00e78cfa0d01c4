package arena_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() { actors["end"] = actEnd }

// actEnd holds both ends of a ring until it is killed.
func actEnd(d *arena.Domain, args []string) error {
	if _, err := openAs(d, args[0], args[1], args[2]); err != nil {
		return err
	}
	say("%d", d.Seat())
	untilKilled()
	return nil
}

const longNap = 20 * time.Second

// napGet gets a message with naps of up to most. It repeats a get that a signal of the Go runtime,
// or the death of a child, has interrupted.
func napGet(r *arena.Ring, most time.Duration) (err error) {
	for {
		err = r.Get(&arena.ThreadWait{Most: most}, new(arena.Message))
		if !errors.Is(err, arena.ErrInterrupted) {
			return err
		}
	}
}

// A wait that naps on its own thread is woken by a put, by the close of its view, and by the close
// of its domain, long before its nap is over.
func TestThreadWait_IsWoken(t *testing.T) {
	for name, wake := range map[string]func(mine, theirs *arena.Ring, d *arena.Domain) error{
		"put":    func(mine, _ *arena.Ring, _ *arena.Domain) error { return mine.TryPut(nil, nil, false) },
		"close":  func(_, theirs *arena.Ring, _ *arena.Domain) error { theirs.Close(); return nil },
		"domain": func(_, _ *arena.Ring, d *arena.Domain) error { return d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 8<<20, func(t *testing.T, f *family) {
				a, b := f.first, f.join()
				r, s, v := newRing(t, a, 1)
				theirs := open(t, b, r.Handle(), s, v)
				begun := time.Now()
				got := async(func() error { return napGet(theirs, longNap) })
				testutil.Eventually(t, func() bool { return b.Napping(b.Seat()) && r.Asks(b.Seat()) }, "nobody naps")
				testutil.NoError(t, wake(r, theirs, b))
				err := <-got
				if name == "put" {
					testutil.NoError(t, err)
				} else {
					testutil.ErrorIs(t, err, arena.ErrClosed)
				}
				if time.Since(begun) >= longNap {
					t.Error("the nap lasted its full time")
				}
			})
		})
	}
}

// A nap that nobody ends is over after its time, and the wakeup that comes then goes to another
// waiter.
func TestThreadWait_IsOver(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx, a, b := testutil.Context(t), f.first, f.join()
		r, s, v := newRing(t, a, 1)
		theirs := open(t, b, r.Handle(), s, v)
		testutil.ErrorIs(t, napGet(theirs, time.Millisecond), arena.ErrNapOver)
		testutil.ErrorIs(t, theirs.Get(&arena.ThreadWait{}, new(arena.Message)), arena.ErrNapOver)
		parked := async(func() error { return theirs.Get(ctx, new(arena.Message)) })
		testutil.Eventually(t, func() bool { return r.Asks(b.Seat()) }, "nobody waits")
		testutil.NoError(t, r.TryPut(nil, nil, false))
		testutil.NoError(t, <-parked)
	})
}

// A second wait of the process cannot nap, and does not park.
func TestThreadWait_OneNapper(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, _, _ := newRing(t, d, 1)
	if !d.LieDown() {
		t.Fatal("somebody naps")
	}
	defer d.GetUp()
	begun := time.Now()
	testutil.ErrorIs(t, r.Get(&arena.ThreadWait{Most: longNap}, new(arena.Message)), arena.ErrNapOver)
	if time.Since(begun) >= longNap {
		t.Error("the wait slept beside the napper")
	}
}

// A signal handler that runs on the thread ends the nap.
func TestThreadWait_Interrupted(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, _, _ := newRing(t, d, 1)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	thread := make(chan int, 1)
	got := async(func() error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- syscall.Gettid()
		return r.Get(&arena.ThreadWait{Most: longNap}, new(arena.Message))
	})
	tid := <-thread
	testutil.Eventually(t, func() bool { return d.Napping(d.Seat()) }, "nobody naps")
	for {
		testutil.NoError(t, syscall.Tgkill(syscall.Getpid(), tid, syscall.SIGUSR1))
		select {
		case err := <-got:
			testutil.ErrorIs(t, err, arena.ErrInterrupted)
			return
		case <-time.After(time.Millisecond): // the thread was not asleep yet
		}
	}
}

// A process that is killed while a peer's thread naps for long is noticed by that peer.
func TestThreadWait_HearsOfADeath(t *testing.T) {
	d := newDomain(t, 8<<20)
	r, s, v := newRing(t, d, 1)
	sender := start(t, d, "end", ringArgs(r, s, v)...)
	sender.hear()
	testutil.NoError(t, d.Release(s))
	got := async(func() error { return napGet(r, longNap) })
	testutil.Eventually(t, func() bool { return d.Napping(d.Seat()) }, "nobody naps")
	sender.kill()
	testutil.ErrorIs(t, <-got, arena.ErrFinished)
}

// A ThreadWait that another step of an operation uses as a context does not end in time, but at
// once.
func TestThreadWait_AsAContext(t *testing.T) {
	w := &arena.ThreadWait{Most: longNap}
	if w.Err() != nil || context.Cause(w) != nil {
		t.Error("it has ended before it began")
	}
	<-w.Done()
	if !errors.Is(w.Err(), arena.ErrNapOver) {
		t.Errorf("got %v, want %v", w.Err(), arena.ErrNapOver)
	}
}
