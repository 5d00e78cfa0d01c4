package shm_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
)

const newborn = 1<<22 - 1 // a process number of nobody

// named wants an error that says that a newborn has died.
func named(t *testing.T, err, cause error) {
	t.Helper()
	p := new(shm.PeerError)
	if !errors.As(err, &p) || p.PID != newborn || p.Seat != -1 || !errors.Is(err, cause) {
		t.Errorf("%v: does not name the newborn, or is not %v", err, cause)
	}
}

func TestDelivery_LostBreaksBarriersInTheNameOfTheDead(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		ctx, d, other := watchdog(t), f.first, f.join()
		s, err := d.NewSync(shm.SyncOptions{Form: shm.FormBarrier, Limit: 3})
		check(t, err)
		v, err := d.Deliver([]shm.Handle{s.Handle(), alloc(t, d, 100, "x")})
		check(t, err)
		check(t, other.Import(s.Handle()))
		theirs, err := other.OpenSync(s.Handle(), shm.FormBarrier)
		check(t, err)
		waited := make(chan error)
		go func() { _, err := shm.Barrier{Sync: theirs}.Wait(ctx, nil); waited <- err }()
		eventually(t, "nobody waits", func() bool { return shm.Barrier{Sync: s}.Waiting() == 1 })
		v.Lost(newborn)
		named(t, <-waited, shm.ErrBroken)
		_, err = shm.Barrier{Sync: s}.Wait(ctx, nil)
		named(t, err, shm.ErrBroken)
		shm.Barrier{Sync: s}.Reset()
		if (shm.Barrier{Sync: s}).Broken() {
			t.Error("a reset does not forget")
		}
		check(t, v.Close())
	})
}

// The starter closes its own view, and is a member for those that it starts all the same.
func TestDelivery_IsAMembership(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		d, starter := f.first, f.join()
		s, err := d.NewSync(shm.SyncOptions{Form: shm.FormBarrier, Limit: 2})
		check(t, err)
		check(t, starter.Import(s.Handle()))
		v, err := starter.Deliver([]shm.Handle{s.Handle()})
		check(t, err)
		check(t, starter.Release(s.Handle()))
		if n := (shm.Barrier{Sync: s}).Members(); n != 2 {
			t.Errorf("%d members, want 2", n)
		}
		check(t, v.Close())
		if n := (shm.Barrier{Sync: s}).Members(); n != 1 {
			t.Errorf("%d members are left, want 1", n)
		}
	})
}

func TestDelivery_TheLastEndGoesInTheNameOfTheDead(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		ctx, d := watchdog(t), f.first
		for _, c := range []struct{ others, sending bool }{{false, true}, {false, false}, {true, true}} {
			r, senders, receivers, err := d.NewRing(shm.RingOptions{Capacity: 1})
			check(t, err)
			end, kept := senders, receivers
			if !c.sending {
				end, kept = receivers, senders
			}
			v, err := d.Deliver([]shm.Handle{r.Handle(), end})
			check(t, err)
			if c.others {
				check(t, d.Retain(end))
			}
			check(t, d.Release(end))
			check(t, v.LostLast(newborn))
			if c.others {
				check(t, d.Release(end))
			}
			if c.sending {
				err = r.Get(ctx, new(shm.Message))
			} else {
				err = r.TryPut(nil, nil, true)
			}
			if c.others {
				if p := new(shm.PeerError); errors.As(err, &p) || !errors.Is(err, shm.ErrFinished) {
					t.Errorf("%v: the last sender has closed in order", err)
				}
			} else {
				named(t, err, shm.ErrFinished)
			}
			r.Close()
			check(t, errors.Join(d.Release(kept), d.Release(r.Handle())))
		}
		wantRest(t, d, 0)
	})
}

func TestDelivery_HoldsAllOrNothing(t *testing.T) {
	d := newDomain(t, 16<<20)
	h, gone := alloc(t, d, 100, "x"), alloc(t, d, 100, "y")
	check(t, d.Release(gone))
	if _, err := d.Deliver([]shm.Handle{h, gone}); !errors.Is(err, shm.ErrStale) {
		t.Errorf("%v", err)
	}
	check(t, d.Release(h))
	wantRest(t, d, 0)
}
