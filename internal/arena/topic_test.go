package arena_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A message wakes the goroutines that wait at its own ring, and no others test their conditions.
func TestTopic_WakeTouchesOnlyTheRingThatRang(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx, a, b := testutil.Context(t), f.first, f.join()
		const n = 20
		var theirs [n]*arena.Ring
		var rings [n]*arena.Ring
		var got [n]<-chan error
		for i := range rings {
			r, s, v := newRing(t, a, 1)
			rings[i], theirs[i] = r, open(t, b, r.Handle(), s, v)
		}
		looks := b.CountLooks()
		for i, r := range theirs {
			got[i] = async(func() error { return r.Get(ctx, new(arena.Message)) })
		}
		testutil.Eventually(t, func() bool { return b.Parked() == n }, "not all wait")
		testutil.Eventually(t, func() bool { return len(looks()) == 0 }, "not all have stopped to look")
		testutil.NoError(t, rings[7].TryPut(nil, nil, false))
		testutil.NoError(t, <-got[7])
		for i, c := range looks() {
			if i != theirs[7].Handle() && c != 0 {
				t.Errorf("the condition of ring %v was tested %d times for the message of another", i, c)
			}
		}
		for i := range rings {
			if i != 7 {
				testutil.NoError(t, rings[i].TryPut(nil, nil, false))
				testutil.NoError(t, <-got[i])
			}
		}
	})
}

// More rings get a message at once than wakeups fit into the queue of a doorbell.
func TestTopic_NoneIsLostWhenTheBellIsFull(t *testing.T) {
	everyWorld(t, 8<<20, func(t *testing.T, f *family) {
		ctx, a, b := testutil.Context(t), f.first, f.join()
		const n = 300
		var rings, theirs [n]*arena.Ring
		for i := range rings {
			r, s, v := newRing(t, a, 1)
			rings[i], theirs[i] = r, open(t, b, r.Handle(), s, v)
		}
		for range 20 {
			var got [n]<-chan error
			for i, r := range theirs {
				got[i] = async(func() error { return r.Get(ctx, new(arena.Message)) })
			}
			testutil.Eventually(t, func() bool { return b.Parked() == n }, "not all wait")
			for _, r := range rings {
				testutil.NoError(t, r.TryPut(nil, nil, false))
			}
			for i := range got {
				testutil.NoError(t, <-got[i])
			}
		}
	})
}

// Views of one ring, and of others, are registered and unregistered in any order.
func TestTopic_ViewsOfOneRingCloseInAnyOrder(t *testing.T) {
	d := newDomain(t, 8<<20)
	ctx := testutil.Context(t)
	for first := range 3 {
		r, _, _ := newRing(t, d, 1)
		views := []*arena.Ring{r}
		for range 2 {
			v, err := d.OpenRing(r.Handle())
			testutil.NoError(t, err)
			t.Cleanup(v.Close)
			views = append(views, v)
		}
		views[first].Close()
		views[first].Close() // a second time
		for i, v := range views {
			if i == first {
				continue
			}
			got := async(func() error { return v.Get(ctx, new(arena.Message)) })
			testutil.Eventually(t, func() bool { return v.Waiters() == 1 }, "nobody waits at view %d", i)
			testutil.NoError(t, views[(first+1)%3].TryPut(nil, nil, false))
			testutil.NoError(t, <-got)
		}
	}
}
