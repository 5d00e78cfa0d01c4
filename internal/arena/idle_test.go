package arena_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
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
		var h arena.Handle
		var err error
		somewhere(func() { used[d.LaneHere()] = true; h, err = d.Alloc(size) })
		testutil.NoError(t, err)
		somewhere(func() { err = d.Release(h) })
		testutil.NoError(t, err)
	}
	if len(used) < 10 {
		t.Fatalf("only the lanes %v were used", used)
	}
	if s := d.Stats(); s.IdleBytes > 10*size {
		t.Errorf("one block at a time, in %d lanes, leaves %d idle blocks of %d bytes", len(used), s.Idle, s.IdleBytes)
	}
	wantRest(t, d, 0)
}

// TestIdle_DoesNotGrowDuringASweep: an allocation that finds the lists empty, because another
// process sweeps, takes a free block all the same.
func TestIdle_DoesNotGrowDuringASweep(t *testing.T) {
	const blocks, size = 10, 8 << 10
	d := newDomain(t, 64<<20)
	fill := func() {
		var hs []arena.Handle
		for range blocks {
			hs = append(hs, testutil.Value(d.Alloc(size))(t))
		}
		for _, h := range hs {
			testutil.NoError(t, d.Release(h))
		}
	}
	fill()
	want := d.Stats().Committed
	d.BeginSweep()
	fill()
	if got := d.Stats().Committed; got != want {
		t.Errorf("%d bytes are committed, and %d were before", got, want)
	}
	d.LoseHints()
	wantRest(t, d, 0)
}

// Weights that were replaced are many blocks of a few MiB. Their pages go back to the system when
// nobody has used them for a while, also when the process that freed them has left, and blocks in
// use keep theirs.
func TestIdle_PagesOfATensorGoBack(t *testing.T) {
	const blocks, size = 8, 2 << 20
	d := newDomain(t, 64<<20)
	kept, err := d.Alloc(size)
	testutil.NoError(t, err)
	free := func() {
		var hs []arena.Handle
		for range blocks {
			h, err := d.Alloc(size)
			testutil.NoError(t, err)
			hs = append(hs, h)
		}
		for _, h := range hs {
			testutil.NoError(t, d.Release(h))
		}
	}
	free()
	d.Trim()
	free() // a block that was used between two looks keeps its pages
	d.Trim()
	if s := d.Stats(); s.IdleBytes != blocks*size {
		t.Errorf("blocks that were used since the last look: %d bytes idle, want %d", s.IdleBytes, blocks*size)
	}
	d.Trim()
	if s := d.Stats(); s.IdleBytes != 0 || s.Committed != size {
		t.Errorf("blocks that nobody uses: %d bytes idle and %d committed, want 0 and %d", s.IdleBytes,
			s.Committed, size)
	}
	testutil.NoError(t, d.Release(kept))
}
