package arena_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// reap takes back what the dead held; the participants of one process have one pid, so nobody is
// told of a death. reap returns when the dead are reaped, by us or by a watch that was quicker.
// reap returns when all that can be taken back was. Reap alone would not do: it leaves its work to
// another reaper, which looks again after it has given the lock back.
func reap(t *testing.T, d *arena.Domain) {
	t.Helper()
	_, err := d.Reap()
	testutil.NoError(t, err)
	testutil.Eventually(t, func() bool {
		alone, err := d.ReapAlone()
		testutil.NoError(t, err)
		return alone
	}, "a reaper does not end")
}

func TestDeath_InTheMiddleOfAnything(t *testing.T) {
	for _, halt := range arena.Halts {
		t.Run(halt.Name, func(t *testing.T) {
			everyWorld(t, 16<<20, func(t *testing.T, f *family) {
				a, b := f.first, f.join()
				r, s, v := newRing(t, a, 8)
				other := open(t, b, r.Handle(), s, v)
				testutil.NoError(t, r.TryPut(nil, []arena.Handle{alloc(t, a, 64, "queued")}, true))
				h := alloc(t, b, 64, "held")
				testutil.NoError(t, a.Import(h))
				testutil.NoError(t, halt.Do(b, other, h))
				testutil.NoError(t, b.Abandon())
				testutil.Eventually(t, func() bool { reap(t, a); return a.Stats().Reaped == 1 }, "nobody reaped")
				testutil.NoError(t, a.Audit())
				wantMark(t, a, h, "held")
				testutil.NoError(t, a.Release(h))
				var m arena.Message
				for r.TryGet(&m) == nil {
					m.Discard()
				}
				wantRest(t, a, 3)
				testutil.NoError(t, r.Put(testutil.Context(t), []byte("goes on"), nil, false))
				testutil.NoError(t, r.Get(testutil.Context(t), &m))
			})
		})
	}
}

// Every halt at once, in one participant each, and a single survivor.
func TestDeath_OfAllButOne(t *testing.T) {
	everyWorld(t, 64<<20, func(t *testing.T, f *family) {
		a := f.first
		r, s, v := newRing(t, a, 64)
		var dead []*arena.Domain
		for range arena.Halts {
			testutil.NoError(t, r.TryPut(nil, []arena.Handle{alloc(t, a, 64, "queued")}, true))
		}
		for _, halt := range arena.Halts {
			d := f.join()
			testutil.NoError(t, halt.Do(d, open(t, d, r.Handle(), s, v), alloc(t, d, 64, "held")))
			dead = append(dead, d)
		}
		for _, d := range dead { // none of them reaps another one first
			testutil.NoError(t, d.Stop())
		}
		for _, d := range dead {
			testutil.NoError(t, d.Abandon())
		}
		testutil.Eventually(t, func() bool { reap(t, a); return a.Stats().Reaped == len(dead) },
			"somebody is not reaped")
		testutil.NoError(t, a.Audit())
		var m arena.Message
		for r.TryGet(&m) == nil {
			m.Discard()
		}
		wantRest(t, a, 3)
	})
}

func TestDeath_OfASenderLeavesItsMessages(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 4)
		testutil.NoError(t, open(t, b, r.Handle(), s, v).
			TryPut([]byte("will"), []arena.Handle{alloc(t, b, 64, "left")}, true))
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		var m arena.Message
		testutil.NoError(t, r.TryGet(&m))
		if string(m.Body) != "will" {
			t.Errorf("got %q", m.Body)
		}
		wantMark(t, a, m.Blocks[0], "left")
		m.Discard()
		wantRest(t, a, 3)
	})
}

func TestDeath_OfAReaderDropsItsMessageAndCounts(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 4)
		for _, name := range []string{"first", "second"} {
			testutil.NoError(t, r.TryPut([]byte(name), []arena.Handle{alloc(t, a, 64, name)}, true))
		}
		halted(t, "get reading").Do(b, open(t, b, r.Handle(), s, v), 0)
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		var m arena.Message
		testutil.NoError(t, r.TryGet(&m))
		if string(m.Body) != "second" || a.Stats().Dropped != 1 {
			t.Errorf("got %q, %d dropped", m.Body, a.Stats().Dropped)
		}
	})
}

func halted(t *testing.T, name string) arena.Halt {
	t.Helper()
	for _, h := range arena.Halts {
		if h.Name == name {
			return h
		}
	}
	t.Fatalf("no halt %q", name)
	return arena.Halt{}
}

// The ring that b leaves has a message with a block in whose put c stands. So the reaper of b waits
// for c, and keeps the recovery lock. Then c dies, and nobody else reaps it.
func TestDeath_OfAProcessForWhichAReaperWaits(t *testing.T) {
	defer arena.SetEndsTime(time.Hour)()
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		a, b, c := f.first, f.join(), f.join()
		r, s, v := newRing(t, a, 8)
		x := alloc(t, a, 64, "shared")
		testutil.NoError(t, errors.Join(b.Import(x), c.Import(x)))
		own, _, _ := newRing(t, b, 4)
		testutil.NoError(t, own.TryPut(nil, []arena.Handle{x}, false))
		testutil.NoError(t, halted(t, "put stamped").Do(c, open(t, c, r.Handle(), s, v), x))
		testutil.NoError(t, c.Stop()) // it does not reap b, which it would do in the middle of its own put
		testutil.NoError(t, b.Abandon())
		reaped := make(chan error, 1)
		go func() {
			_, err := a.Reap()
			reaped <- err
		}()
		testutil.Eventually(t, func() bool { return a.AwaitedStamp(x) }, "no reaper waits for the put")
		testutil.NoError(t, c.Abandon())
		testutil.NoError(t, <-reaped)
		reap(t, a)
		testutil.NoError(t, errors.Join(a.Retain(x), a.Release(x)))
		testutil.Eventually(t, func() bool { reap(t, a); return a.Stats().Reaped == 2 }, "somebody is not reaped")
		testutil.NoError(t, a.Audit())
		testutil.NoError(t, a.Release(x))
		wantRest(t, a, 3)
	})
}

// A hole in a ring is room: a sender that waits for room hears of it from the reader that passes
// it.
func TestDeath_OfASenderLeavesAHoleThatIsRoom(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 1)
		testutil.NoError(t, halted(t, "put writing").Do(b, open(t, b, r.Handle(), s, v), alloc(t, b, 64, "x")))
		var g sync.WaitGroup
		g.Go(func() {
			if err := r.Put(ctx, []byte("through"), nil, false); err != nil {
				t.Error(err)
			}
		})
		g.Go(func() {
			var m arena.Message
			if err := r.Get(ctx, &m); err != nil || string(m.Body) != "through" {
				t.Errorf("get: %q, %v", m.Body, err)
			}
		})
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		g.Wait()
		wantRest(t, a, 3)
	})
}

func TestDeath_OfTheLastSenderEndsTheRing(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx := testutil.Context(t)
		a, b := f.first, f.join()
		r, s, v := newRing(t, a, 4)
		open(t, b, r.Handle(), s, v)
		testutil.NoError(t, a.Release(s))
		got := make(chan error)
		go func() { got <- r.Get(ctx, new(arena.Message)) }()
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		if err := <-got; !errors.Is(err, arena.ErrFinished) {
			t.Errorf("get: %v, want ErrFinished", err)
		}
	})
}

// The reaper does not wait for a living lane: it comes back when that is done.
func TestReaper_ComesBackForWhatALivingLaneBlocks(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		a, b, c := f.first, f.join(), f.join()
		r, s, v := newRing(t, a, 4)
		h := alloc(t, a, 64, "x")
		testutil.NoError(t, c.Import(h))
		testutil.NoError(t, r.TryPut(nil, []arena.Handle{h}, true))
		testutil.NoError(t, halted(t, "get reading").Do(b, open(t, b, r.Handle(), s, v), 0))
		end, err := c.StampPut(h)
		testutil.NoError(t, err)
		testutil.NoError(t, b.Abandon())
		reap(t, a)
		if n := a.Stats().Reaped; n != 0 || !a.WaitsForStamp(h) {
			t.Fatalf("%d reaped, waits: %t", n, a.WaitsForStamp(h))
		}
		begun := a.DeathEpoch()
		for range 200 {
			if time.Sleep(time.Millisecond); a.DeathEpoch() > begun+100 {
				t.Fatal("the reaper spins")
			}
		}
		end()
		testutil.Eventually(t, func() bool { return a.Stats().Reaped == 1 }, "the dead reader is not reaped")
		testutil.NoError(t, c.Release(h))
		wantRest(t, a, 3)
	})
}

// The words of a ring that only the dead held are somebody's data as soon as the ring is free.
func TestReaper_LeavesFreedRingsAlone(t *testing.T) {
	everyWorld(t, 1<<20, func(t *testing.T, f *family) {
		a := f.first
		for range 20 {
			b := f.join()
			newRing(t, b, 64)
			testutil.NoError(t, b.Abandon())
			reap(t, a)
			wantRest(t, a, 0)
		}
	})
}

func TestSeat_OfTheDeadIsUsedAgain(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		seat, epoch := -1, uint32(0)
		for i := range 5 {
			d := f.join()
			if i > 0 && (d.Seat() != seat || d.Epoch() <= epoch) {
				t.Errorf("seat %d epoch %d after seat %d epoch %d", d.Seat(), d.Epoch(), seat, epoch)
			}
			seat, epoch = d.Seat(), d.Epoch()
			alloc(t, d, 100, "x")
			testutil.NoError(t, d.Abandon())
			reap(t, f.first)
		}
		wantRest(t, f.first, 0)
	})
}

func TestSeat_OneParticipantTooManyIsRefused(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		all := []*arena.Domain{f.first}
		for range arena.MaxParticipants - 1 {
			all = append(all, f.join())
		}
		if _, err := f.attach(); !errors.Is(err, arena.ErrTooManyParticipants) {
			t.Errorf("attach: %v, want ErrTooManyParticipants", err)
		}
		alloc(t, all[100], 64, "x")
		testutil.NoError(t, all[100].Abandon())
		testutil.NoError(t, all[101].Abandon())
		if d := f.join(); d.Seat() != 100 && d.Seat() != 101 {
			t.Errorf("joined in seat %d", d.Seat())
		}
		for _, d := range all[2:] {
			d.Close()
		}
	})
}

func TestDeath_IsNoticedByItself(t *testing.T) {
	h, a, err := arena.NewHeap(8 << 20)
	testutil.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	var all []*arena.Domain
	for range 8 {
		d, err := h.Join()
		testutil.NoError(t, err)
		t.Cleanup(func() { d.Close() })
		alloc(t, d, 1000, fmt.Sprint(d.Seat()))
		all = append(all, d)
	}
	for _, pair := range [][]int{{0}, {2, 3}, {7, 6}, {1, 4, 5}} {
		for _, i := range pair {
			testutil.NoError(t, all[i].Abandon())
		}
	}
	testutil.Eventually(t, func() bool { s := a.Stats(); return s.Participants == 1 && s.Reaped == 8 },
		"the dead are not reaped")
	wantRest(t, a, 0)
}

// An object that a killed process had freed but for the last write is gone for a process that has
// come in the meantime: it has lost its messages, and the mark of what it was.
func TestReaper_EndsAFreeThatWasDoneButForItsEnd(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		d, late := f.join(), f.first
		r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 1})
		testutil.NoError(t, err)
		h := r.Handle()
		r.Close()
		d.AlmostFree(h)
		imported := async(func() error { return late.Import(h) })
		testutil.Eventually(t, func() bool { return late.WaitsForStamp(h) }, "nobody waits for the stamp")
		died(t, d, late)
		wantIs(t, <-imported, arena.ErrStale)
		if !late.Stale(h) || !late.Stale(senders) || !late.Stale(receivers) {
			t.Error("the ring or its ends are left")
		}
		wantRest(t, late, 0)
	})
}
