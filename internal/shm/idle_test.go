package shm_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/shm"
)

// Goroutines allocate in some lanes and free in others. Blocks that lanes keep are found by the
// others, so idle memory is that of a few blocks, however often that happens.
func TestIdle_DoesNotGrowWithTheLanes(t *testing.T) {
	const lanes, blocks, size = 200, 10_000, 8 << 10 // goroutines with stacks of their own, in different lanes
	d := newDomain(t, 64<<20)
	do, done := make(chan func()), make(chan bool)
	for range lanes {
		go func() {
			for f := range do {
				f()
				done <- true
			}
		}()
	}
	defer close(do)
	somewhere := func(f func()) {
		do <- f
		<-done
	}
	used := map[int]bool{}
	for range blocks {
		var h shm.Handle
		var err error
		somewhere(func() { used[d.LaneHere()] = true; h, err = d.Alloc(size) })
		check(t, err)
		somewhere(func() { err = d.Release(h) })
		check(t, err)
	}
	if len(used) < 10 {
		t.Fatalf("only the lanes %v were used", used)
	}
	if s := d.Stats(); s.IdleBytes > 10*size {
		t.Errorf("one block at a time, in %d lanes, leaves %d idle blocks of %d bytes", len(used), s.Idle, s.IdleBytes)
	}
	wantRest(t, d, 0)
}
