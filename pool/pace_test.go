package pool_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestDefaultChunkSize(t *testing.T) {
	us := time.Microsecond
	for _, c := range []struct {
		opts      pool.Options
		wanted, n int
		perValue  time.Duration
		want      int
	}{
		{pool.Options{Workers: 4}, 0, 10_000, 0, 625},           // unknown: four chunks per worker
		{pool.Options{Workers: 4}, 0, 10_000, 20, 2500},         // tiny: as large as its work, or one per worker
		{pool.Options{Workers: 4}, 0, 10_000, 50, 1000},         // 50 µs of work
		{pool.Options{Workers: 4}, 0, 10_000, us, 625},          // slower: as before
		{pool.Options{Workers: 4}, 0, 10_000, time.Second, 625}, // no chunk is smaller for that
		{pool.Options{Workers: 4}, 0, 3, 20, 1},                 // fewer values than workers
		{pool.Options{Workers: 4}, 0, 0, 20, 1},                 // none
		{pool.Options{Workers: 4}, 7, 10_000, 20, 7},            // the function's own
		{pool.Options{Workers: 4, ChunkSize: 9}, 0, 100, 20, 9}, // the pool's own
		{pool.Options{Workers: 4, MaxTasksPerWorker: 1}, 0, 10_000, 20, 625},
	} {
		if got := pool.ChunkSizeFor(c.opts, c.wanted, c.n, c.perValue); got != c.want {
			t.Errorf("%+v, own size %d, %d values of %v: chunks of %d, want %d",
				c.opts, c.wanted, c.n, c.perValue, got, c.want)
		}
	}
}

func TestPace(t *testing.T) {
	took := func(chunks ...time.Duration) time.Duration { return pool.PaceAfter(100, chunks...) }
	us := time.Microsecond
	if got := took(); got != 0 {
		t.Errorf("without a chunk: %v, want 0", got)
	}
	if got := took(100 * us); got != us {
		t.Errorf("got %v per value, want 1 µs", got)
	}
	if got := took(100*us, 900*us); got != 9*us {
		t.Errorf("after a slower chunk: %v, want 9 µs", got)
	}
	if got := took(900*us, 100*us); got != 8*us {
		t.Errorf("after a faster chunk: %v, want 8 µs", got)
	}
	if got := took(0); got != 1 {
		t.Errorf("of no time: %v, want 1 ns", got)
	}
}

var (
	paced   = pool.Register("paced", func(_ context.Context, x int) (int, error) { noteChunk(x); return -x, nil })
	pacedMu sync.Mutex
	seen    []int
)

func noteChunk(x int) {
	pacedMu.Lock()
	defer pacedMu.Unlock()
	seen = append(seen, x)
}

// The results do not depend on the size that later calls choose.
func TestMap_OfTinyTasksRepeatedly(t *testing.T) {
	p, err := pool.New(t.Context(), pool.Options{Workers: 3, Process: shoal.Options{Start: shoal.GoroutineStart}})
	testutil.NoError(t, err)
	defer p.Close()
	in := make([]int, 1000)
	for i := range in {
		in[i] = i
	}
	for range 5 {
		seen = nil
		out, err := paced.Map(testutil.Context(t), p, in)
		testutil.NoError(t, err)
		for i, v := range out {
			if v != -i {
				t.Fatalf("result %d is %d", i, v)
			}
		}
		if slices.Sort(seen); !slices.Equal(seen, in) {
			t.Fatal("a value was not run exactly once")
		}
	}
}
