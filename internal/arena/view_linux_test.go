package arena_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// joinAddress returns a second participant of d, in this process.
func joinAddress(t *testing.T, d *arena.Domain) *arena.Domain {
	t.Helper()
	var own []*os.File
	for _, f := range d.Files() {
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		own = append(own, os.NewFile(uintptr(fd), f.Name()))
	}
	p, err := arena.Attach(own[0], own[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func newViewDomain(t *testing.T) *arena.Domain {
	t.Helper()
	d, err := arena.New(arena.Options{Budget: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func newViewRing(t *testing.T, d *arena.Domain, capacity int) *arena.Ring {
	t.Helper()
	r, _, _, err := d.NewRing(arena.RingOptions{Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func TestView_RingHoldsExactlyItsCapacity(t *testing.T) {
	d := newViewDomain(t)
	var m arena.Message
	for _, capacity := range []int{1, 2, 3, 5, 8, 10} {
		r := newViewRing(t, d, capacity)
		for lap := range 3 {
			for i := range capacity {
				if err := r.TryPut(nil, nil, false); err != nil {
					t.Fatalf("capacity %d, lap %d, put %d: %v", capacity, lap, i, err)
				}
			}
			if err := r.TryPut(nil, nil, false); !errors.Is(err, arena.ErrFull) {
				t.Errorf("capacity %d: one more put: %v", capacity, err)
			}
			if r.Len() != capacity || r.Cap() != capacity {
				t.Errorf("capacity %d: Len %d, Cap %d", capacity, r.Len(), r.Cap())
			}
			for range capacity {
				if err := r.TryGet(&m); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.TryGet(&m); !errors.Is(err, arena.ErrEmpty) {
				t.Errorf("capacity %d: one more get: %v", capacity, err)
			}
		}
	}
}

func TestView_CloseEndsItsWaiters(t *testing.T) {
	ctx, d := testutil.Context(t), newViewDomain(t)
	r := newViewRing(t, d, 1)
	got := make(chan error)
	go func() { got <- r.Get(ctx, new(arena.Message)) }()
	go func() { got <- r.Await(ctx) }()
	r.Close()
	for range 2 {
		if err := <-got; !errors.Is(err, arena.ErrClosed) {
			t.Errorf("a waiting get: %v", err)
		}
	}
}

// A process that waited and was cancelled has still asked to be woken. The wakeup that it gets
// belongs to somebody else.
func TestView_CancelledWaiterTakesNobodysWake(t *testing.T) {
	ctx, d := testutil.Context(t), newViewDomain(t)
	other := joinAddress(t, d)
	r := newViewRing(t, d, 4)
	if err := other.Import(r.Handle()); err != nil {
		t.Fatal(err)
	}
	view, err := other.OpenRing(r.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	for range 300 {
		brief, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
		if err := r.Get(brief, new(arena.Message)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
		got := make(chan error)
		go func() { got <- view.Get(ctx, new(arena.Message)) }()
		time.Sleep(50 * time.Microsecond) // lets it park, most times
		if err := view.TryPut(nil, nil, false); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
}

func TestView_ClosedTakesNobodysWake(t *testing.T) {
	ctx, d := testutil.Context(t), newViewDomain(t)
	other := joinAddress(t, d)
	r := newViewRing(t, d, 4)
	if err := other.Import(r.Handle()); err != nil {
		t.Fatal(err)
	}
	view, err := other.OpenRing(r.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	for range 300 {
		gone, err := d.OpenRing(r.Handle())
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() { gone.Get(ctx, new(arena.Message)); got <- nil }()
		go func() { got <- view.Get(ctx, new(arena.Message)) }()
		time.Sleep(50 * time.Microsecond)
		go gone.Close()
		for range 2 { // one of them may go to the view that closes
			if err := view.TryPut(nil, nil, false); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := <-got; err != nil {
				t.Fatal(err)
			}
		}
		for r.TryGet(new(arena.Message)) == nil {
		}
	}
}
