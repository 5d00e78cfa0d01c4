package arena

import (
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
)

// countedBells counts the datagrams that one participant sends to doorbells.
type countedBells struct {
	store
	sent atomic.Int32
}

func (s *countedBells) RingBell(seat int, name uint64, t park.Topic) bool {
	s.sent.Add(1)
	return s.store.RingBell(seat, name, t)
}

func TestLeave_WakesItsWatchersOnly(t *testing.T) {
	heap := newHeap(4<<20, 1<<16)
	first, err := createDomain(heap, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for range 9 {
		d, err := attachDomain(heap)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
	}
	mutex, err := first.NewSync(SyncOptions{Form: FormMutex})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		use   func(d *Domain) error
		leave int32 // at least; a reaper of another participant may ring some more
	}{
		{"idle", func(*Domain) error { return nil }, 2},
		{"with a mutex", func(d *Domain) error {
			if err := d.Import(mutex.Handle()); err != nil {
				return err
			}
			s, err := d.OpenSync(mutex.Handle(), FormMutex)
			if err == nil {
				s.Close()
			}
			return err
		}, 2 * 10}, // before and after it has freed its seat
	} {
		bells := &countedBells{store: heap}
		d, err := attachDomain(bells)
		if err != nil {
			t.Fatal(err)
		}
		if n := bells.sent.Load(); n < 2 || n > 5 {
			t.Errorf("%s: the join rang %d doorbells, want 2", c.name, n)
		}
		if err := c.use(d); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		bells.sent.Store(0)
		if err := d.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if n := bells.sent.Load(); n < c.leave || n > c.leave+3 {
			t.Errorf("%s: the leave rang %d doorbells, want %d", c.name, n, c.leave)
		}
	}
}

// A participant that leaves a domain with many blocks must not look at all of them: touching the
// headers of a million blocks took 90 ms.
func TestLeave_LooksOnlyAtChunksThatItHeld(t *testing.T) {
	heap := newHeap(64<<20, 1<<16)
	first, err := createDomain(heap, 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for range 3 * refChunk {
		if _, err := first.Alloc(64); err != nil {
			t.Fatal(err)
		}
	}
	d, err := attachDomain(heap)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Alloc(64); err != nil {
		t.Fatal(err)
	}
	r := newReaper(d, &d.lanes[reaperLane], new(deadSet))
	count := func() (n int) {
		r.eachBlock(func(i uint32, _ *layout.Block) bool {
			n++
			return true
		})
		return n
	}
	if n := count(); n < 3*refChunk {
		t.Errorf("a reaper of the dead looks at %d blocks, want all of %d", n, 3*refChunk)
	}
	r.held = &d.refs
	if n := count(); n == 0 || n > 2*refChunk { // its block, and the table of contents
		t.Errorf("a participant that leaves looks at %d blocks, want 1 to %d", n, 2*refChunk)
	}
}
