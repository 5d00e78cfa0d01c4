package arena_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestMain is also the main function of the processes that the tests start.
func TestMain(m *testing.M) {
	if name := os.Getenv(actorEnv); name != "" {
		if err := act(name); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	shoaltest.TestMain(m)
}

// A world is a way to have several participants: the suite runs in each.
type world struct {
	name string
	// found makes a domain with a budget of so many bytes and returns its first participant.
	found func(t *testing.T, budget int) *family
}

// A family is the participants of one domain.
type family struct {
	t      *testing.T
	first  *arena.Domain
	attach func() (*arena.Domain, error)
}

var worlds = []world{{"heap", foundHeap}, {"memfd", foundMemfd}}

func foundHeap(t *testing.T, budget int) *family {
	h, d, err := arena.NewHeap(budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &family{t, d, h.Join}
}

func foundMemfd(t *testing.T, budget int) *family {
	d := newDomain(t, int64(budget))
	return &family{t, d, func() (*arena.Domain, error) { return attachAgain(d) }}
}

// attachAgain makes a participant of d's domain in this process.
func attachAgain(d *arena.Domain) (*arena.Domain, error) {
	control, data, err := d.Dup(sys.Reopen)
	if err != nil {
		return nil, err
	}
	again, err := arena.Attach(control, data)
	if err != nil {
		return nil, errors.Join(err, control.Close(), data.Close())
	}
	return again, nil
}

// newDomain makes a domain that is closed with the test.
func newDomain(t testing.TB, budget int64) *arena.Domain {
	t.Helper()
	d, err := arena.New(arena.Options{Budget: budget, Reserve: 16 * budget})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// join adds a participant.
func (f *family) join() *arena.Domain {
	f.t.Helper()
	d, err := f.attach()
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { d.Close() })
	return d
}

// everyWorld runs a test of the suite in each world.
func everyWorld(t *testing.T, budget int, test func(*testing.T, *family)) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) { test(t, w.found(t, budget)) })
	}
}

// untilReaped waits until all is taken back that the dead had. Stats().Participants says less: it
// goes down when a death is noticed.
func untilReaped(t testing.TB, d *arena.Domain) {
	t.Helper()
	testutil.Eventually(t, func() bool {
		more, err := d.Unreaped()
		testutil.NoError(t, err)
		return !more
	}, "not all who died are reaped")
}

// alloc returns a block whose first bytes are mark.
func alloc(t testing.TB, d *arena.Domain, size int, mark string) arena.Handle {
	t.Helper()
	h, err := d.Alloc(size)
	testutil.NoError(t, err)
	p, err := d.Bytes(h)
	testutil.NoError(t, err)
	copy(p, mark)
	return h
}

// wantMark fails if the block h of d does not begin with mark.
func wantMark(t testing.TB, d *arena.Domain, h arena.Handle, mark string) {
	t.Helper()
	p, err := d.Bytes(h)
	testutil.NoError(t, err)
	if string(p[:len(mark)]) != mark {
		t.Fatalf("%v begins with %q, want %q", h, p[:len(mark)], mark)
	}
}

// newRing makes a ring and returns it with its two ends.
func newRing(t testing.TB, d *arena.Domain, capacity int) (r *arena.Ring, senders, receivers arena.Handle) {
	t.Helper()
	r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: capacity})
	testutil.NoError(t, err)
	return r, senders, receivers
}

// open gives d a view of r and references of its block and both ends.
func open(t testing.TB, d *arena.Domain, h, senders, receivers arena.Handle) *arena.Ring {
	t.Helper()
	for _, x := range []arena.Handle{h, senders, receivers} {
		testutil.NoError(t, d.Import(x))
	}
	r, err := d.OpenRing(h)
	testutil.NoError(t, err)
	return r
}

// wantRest fails unless so many blocks are in use and the whole domain is as it must be when
// nothing goes on.
func wantRest(t testing.TB, d *arena.Domain, blocks int) {
	t.Helper()
	if err := d.Audit(); err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.Blocks != blocks {
		t.Fatalf("%d blocks in use, want %d: %+v", s.Blocks, blocks, s)
	}
}
