package arena_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

func init() {
	actors["nap"] = actNap
	actors["heir"] = actHeir
}

// actNap lies down, and never gets up.
func actNap(d *arena.Domain, _ []string) error {
	d.LieDown()
	say("%d", d.Seat())
	untilKilled()
	return nil
}

// actHeir says whether its seat is said to nap, and is an echo.
func actHeir(d *arena.Domain, args []string) error {
	word := "awake"
	if d.Napping(d.Seat()) {
		word = "napping"
	}
	say("%d %s", d.Seat(), word)
	return actEcho(d, args)
}

// The napper of a process that is woken answers for all who wait in it.
func TestNap_WakeByItReachesTheParked(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx, a, b := testutil.Context(t), f.first, f.join()
		r, s, v := newRing(t, a, 1)
		theirs := open(t, b, r.Handle(), s, v)
		if !b.LieDown() || b.LieDown() {
			t.Fatal("a process has one napper")
		}
		got := async(func() error { return theirs.Get(ctx, new(arena.Message)) })
		testutil.Eventually(t, func() bool { return r.Asks(b.Seat()) }, "nobody waits")
		testutil.NoError(t, r.TryPut(nil, nil, false))
		if a.Napping(b.Seat()) {
			t.Error("who put a message did not ring by the nap")
		}
		if !b.GetUp() {
			t.Error("the napper was not woken")
		}
		testutil.NoError(t, <-got)
		if !b.LieDown() || b.GetUp() {
			t.Error("a nap was woken by nobody")
		}
	})
}

// An end of the context is heard in the midst of a nap, not only at its end.
func TestNap_EndsWithItsContext(t *testing.T) {
	const forever = 20 * time.Second
	d := newDomain(t, 8<<20)
	nap := func(ctx context.Context, most time.Duration) {
		if !d.LieDown() {
			t.Fatal("somebody naps")
		}
		begin := time.Now()
		d.Sleep(ctx, most)
		if d.GetUp() {
			t.Error("a nap was woken by nobody")
		}
		if most == forever && time.Since(begin) >= forever {
			t.Fatal("a cancellation was not heard")
		}
	}
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		nap(ctx, time.Millisecond)
		go cancel()
		nap(ctx, forever)
		nap(ctx, forever) // of one that has ended
	}
}

// What is called late, when the domain is closed, must leave the nap word alone.
func TestNap_ContextMayEndAfterTheDomain(t *testing.T) {
	d := newDomain(t, 8<<20)
	ctx, cancel := context.WithCancel(t.Context())
	d.LieDown()
	d.Sleep(ctx, time.Millisecond)
	d.GetUp()
	testutil.NoError(t, d.Close())
	cancel()
	d.WakeUp()
}

func TestNap_NotInAClosedDomain(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		d := f.join()
		d.LieDown()
		closed := async(d.Close)
		testutil.Eventually(t, func() bool { return !d.Napping(d.Seat()) }, "the napper is left alone")
		select {
		case <-closed:
			t.Fatal("the seat was given away beside its napper")
		default:
		}
		d.GetUp()
		testutil.NoError(t, <-closed)
		if d.LieDown() {
			t.Error("a nap in a seat that may be another participant's")
		}
	})
}

// A process that is killed while it naps leaves a word that says so: the next process in its seat
// must be woken by its doorbell.
func TestNap_WordOfTheDeadIsCleared(t *testing.T) {
	d := newDomain(t, 16<<20)
	ctx := testutil.Context(t)
	sleeper := start(t, d, "nap")
	seat, err := strconv.Atoi(sleeper.hear())
	testutil.NoError(t, err)
	sleeper.kill()
	untilReaped(t, d)
	there, s1, v1 := newRing(t, d, 1)
	back, s2, v2 := newRing(t, d, 1)
	heir := start(t, d, "heir", append(ringArgs(there, s1, v1), ringArgs(back, s2, v2)...)...)
	if got, want := heir.hear(), fmt.Sprint(seat, " awake"); got != want {
		t.Errorf("seat and nap word of the heir: %q, want %q", got, want)
	}
	testutil.Eventually(t, func() bool { return there.Asks(seat) }, "the heir does not wait")
	testutil.NoError(t, there.Put(ctx, nil, nil, false))
	testutil.NoError(t, back.Get(ctx, new(arena.Message)))
	there.Finish()
	heir.finish()
}
