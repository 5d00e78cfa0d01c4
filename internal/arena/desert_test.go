package arena_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// desert makes a ring of which d has the sending end and other the receiving one, with messages of
// no block, of one and of six.
func desert(t *testing.T, d, other *arena.Domain) (r *arena.Ring, senders, receivers arena.Handle) {
	t.Helper()
	r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 8})
	testutil.NoError(t, err)
	open(t, other, r.Handle(), senders, receivers)
	testutil.NoError(t, other.Release(senders))
	testutil.NoError(t, d.Release(receivers))
	for _, n := range []int{0, 1, 6} {
		var hs []arena.Handle
		for range n {
			hs = append(hs, alloc(t, d, 5000, "unread"))
		}
		testutil.NoError(t, r.TryPut([]byte("message"), hs, true))
	}
	return r, senders, receivers
}

// What is unread in a queue is let go of with its last receiver, closed or killed, while its sender
// lives.
func TestRing_LastReceiverLetsGoOfTheUnread(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, other, d *arena.Domain, receivers arena.Handle){
		"closed": func(t *testing.T, other, _ *arena.Domain, receivers arena.Handle) {
			testutil.NoError(t, other.Release(receivers))
		},
		"killed": func(t *testing.T, other, d *arena.Domain, _ arena.Handle) { died(t, other, d) },
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 16<<20, func(t *testing.T, f *family) {
				d, other := f.first, f.join()
				r, senders, receivers := desert(t, d, other)
				end(t, other, d, receivers)
				wantRest(t, d, 2) // the ring and its sending end
				if err := r.TryPut(nil, nil, false); !errors.Is(err, arena.ErrFinished) {
					t.Errorf("a put for nobody: %v", err)
				}
				r.Close()
				testutil.NoError(t, d.Release(r.Handle()))
				testutil.NoError(t, d.Release(senders))
			})
		})
	}
}

// A put that comes while the last receiver goes leaves nothing in the queue, one by one and in
// batches.
func TestRing_PutsWhileTheLastReceiverGoes(t *testing.T) {
	d := newDomain(t, 16<<20)
	for i := range 300 {
		r, senders, receivers, err := d.NewRing(arena.RingOptions{Capacity: 64})
		testutil.NoError(t, err)
		begun := make(chan bool)
		put := async(func() error {
			var b arena.Batch
			for j := range 4 {
				b.Body = append(b.Body, byte(j))
				b.Ends = append(b.Ends, len(b.Body))
			}
			for n := 0; ; n++ {
				var err error
				if i%2 == 0 {
					h := alloc(t, d, 100, "late")
					if err = r.TryPut(nil, []arena.Handle{h}, true); err != nil {
						testutil.NoError(t, d.Release(h))
					}
				} else {
					_, err = r.TryPutBatch(&b)
				}
				if n == i%20 {
					close(begun)
				}
				if err != nil && !errors.Is(err, arena.ErrFull) {
					return err
				}
			}
		})
		<-begun
		testutil.NoError(t, d.Release(receivers))
		wantIs(t, <-put, arena.ErrFinished)
		testutil.Eventually(t, func() bool { return r.Empty() }, "round %d leaves messages", i)
		r.Close()
		testutil.NoError(t, d.Release(r.Handle()))
		testutil.NoError(t, d.Release(senders))
	}
	wantRest(t, d, 0)
}

// A sender that is killed between its message and its look leaves the message to its reaper.
func TestReaper_LetsGoOfAMessageForNobody(t *testing.T) {
	everyWorld(t, 16<<20, func(t *testing.T, f *family) {
		d, other := f.first, f.join()
		r, _, receivers := desert(t, other, d)
		r.Desert() // as the finaliser of the receiving end does, before it looks for messages
		died(t, other, d)
		wantRest(t, d, 2) // the ring and its receiving end
		testutil.NoError(t, errors.Join(d.Release(receivers), d.Release(r.Handle())))
	})
}
