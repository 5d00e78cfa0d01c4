package arena_test

import (
	"errors"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

const newborn = 1<<22 - 1 // a process number of nobody

// named wants an error that says that a newborn has died.
func named(t *testing.T, err, cause error) {
	t.Helper()
	p := new(arena.PeerError)
	if !errors.As(err, &p) || p.PID != newborn || p.Seat != -1 || !errors.Is(err, cause) {
		t.Errorf("%v: does not name the newborn, or is not %v", err, cause)
	}
}

func TestDelivery_LostBreaksBarriersInTheNameOfTheDead(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		ctx, d, other := testutil.Context(t), f.first, f.join()
		s, err := d.NewSync(arena.SyncOptions{Form: arena.FormBarrier, Limit: 3})
		testutil.NoError(t, err)
		v, err := d.Deliver([]arena.Handle{s.Handle(), alloc(t, d, 100, "x")})
		testutil.NoError(t, err)
		testutil.NoError(t, other.Import(s.Handle()))
		theirs, err := other.OpenSync(s.Handle(), arena.FormBarrier)
		testutil.NoError(t, err)
		waited := make(chan error)
		go func() { _, err := arena.Barrier{Sync: theirs}.Wait(ctx, nil); waited <- err }()
		testutil.Eventually(t, func() bool { return arena.Barrier{Sync: s}.Waiting() == 1 }, "nobody waits")
		v.Lost(newborn)
		named(t, <-waited, arena.ErrBroken)
		_, err = arena.Barrier{Sync: s}.Wait(ctx, nil)
		named(t, err, arena.ErrBroken)
		arena.Barrier{Sync: s}.Reset()
		if (arena.Barrier{Sync: s}).Broken() {
			t.Error("a reset does not forget")
		}
		testutil.NoError(t, v.Close())
	})
}

// The starter closes its own view, and is a member for those that it starts all the same.
func TestDelivery_IsAMembership(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		d, starter := f.first, f.join()
		s, err := d.NewSync(arena.SyncOptions{Form: arena.FormBarrier, Limit: 2})
		testutil.NoError(t, err)
		testutil.NoError(t, starter.Import(s.Handle()))
		v, err := starter.Deliver([]arena.Handle{s.Handle()})
		testutil.NoError(t, err)
		testutil.NoError(t, starter.Release(s.Handle()))
		if n := (arena.Barrier{Sync: s}).Members(); n != 2 {
			t.Errorf("%d members, want 2", n)
		}
		testutil.NoError(t, v.Close())
		if n := (arena.Barrier{Sync: s}).Members(); n != 1 {
			t.Errorf("%d members are left, want 1", n)
		}
	})
}

func TestDelivery_TheLastEndGoesInTheNameOfTheDead(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		ctx, d := testutil.Context(t), f.first
		for _, c := range []struct{ others, sending bool }{{false, true}, {false, false}, {true, true}} {
			r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 1})
			testutil.NoError(t, err)
			end, kept := senders, receivers
			if !c.sending {
				end, kept = receivers, senders
			}
			v, err := d.Deliver([]arena.Handle{r.Handle(), end})
			testutil.NoError(t, err)
			if c.others {
				testutil.NoError(t, d.Retain(end))
			}
			testutil.NoError(t, d.Release(end))
			v.Lost(newborn)
			testutil.NoError(t, v.Close())
			if c.others {
				testutil.NoError(t, d.Release(end))
			}
			if c.sending {
				err = r.Get(ctx, new(arena.Message))
			} else {
				err = r.TryPut(nil, nil, true)
			}
			if c.others {
				if p := new(arena.PeerError); errors.As(err, &p) || !errors.Is(err, arena.ErrFinished) {
					t.Errorf("%v: the last sender has closed in order", err)
				}
			} else {
				named(t, err, arena.ErrFinished)
			}
			r.Close()
			testutil.NoError(t, errors.Join(d.Release(kept), d.Release(r.Handle())))
		}
		wantRest(t, d, 0)
	})
}

// A process has its argument, is killed, and is reaped before its starter lets go of it. The
// starter sends nothing, so the end goes in the name of the dead one, unless another sender closes
// after it.
func TestDelivery_TheEndOfAReapedReceiverGoesInItsName(t *testing.T) {
	for _, c := range []struct {
		name          string
		others, order bool // another sender closes at last; the receiver closes before it is killed
		sending       bool
	}{
		{name: "sender", sending: true}, {name: "receiver"},
		{name: "another one closes", others: true, sending: true},
		{name: "closed before", order: true, sending: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			everyWorld(t, 16<<20, func(t *testing.T, f *family) {
				ctx, d, other, born := testutil.Context(t), f.first, f.join(), f.join()
				r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 1})
				testutil.NoError(t, err)
				end, kept := senders, receivers
				if !c.sending {
					end, kept = receivers, senders
				}
				if c.others {
					testutil.NoError(t, other.Import(end))
				}
				v, err := d.Deliver([]arena.Handle{r.Handle(), end})
				testutil.NoError(t, err)
				testutil.NoError(t, born.Import(end))
				testutil.NoError(t, d.Release(end))
				if c.order {
					testutil.NoError(t, born.Release(end))
				}
				pid, seat := os.Getpid(), born.Seat() // all participants are of this process
				testutil.NoError(t, born.Abandon())
				reap(t, d)
				testutil.NoError(t, v.Close())
				if c.others {
					testutil.NoError(t, other.Release(end))
				}
				if c.sending {
					err = r.Get(ctx, new(arena.Message))
				} else {
					err = r.Put(ctx, nil, nil, true)
				}
				e := new(arena.PeerError)
				switch found := errors.As(err, &e); {
				case !errors.Is(err, arena.ErrFinished):
					t.Errorf("%v: the last one is gone", err)
				case found != (!c.others && !c.order):
					t.Errorf("%v: whose death was it?", err)
				case found && (e.PID != pid || e.Seat != seat):
					t.Errorf("%v: want process %d in seat %d", err, pid, seat)
				}
				r.Close()
				testutil.NoError(t, errors.Join(d.Release(kept), d.Release(r.Handle())))
				wantRest(t, d, 0)
			})
		})
	}
}

func TestDelivery_HoldsAllOrNothing(t *testing.T) {
	d := newDomain(t, 16<<20)
	h, gone := alloc(t, d, 100, "x"), alloc(t, d, 100, "y")
	testutil.NoError(t, d.Release(gone))
	if _, err := d.Deliver([]arena.Handle{h, gone}); !errors.Is(err, arena.ErrStale) {
		t.Errorf("%v", err)
	}
	testutil.NoError(t, d.Release(h))
	wantRest(t, d, 0)
}
