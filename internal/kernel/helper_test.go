package kernel_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// withThreads sets the number of threads until the test ends.
func withThreads(tb testing.TB, n int) {
	before := kernel.Threads()
	kernel.SetThreads(n)
	tb.Cleanup(func() { kernel.SetThreads(before) })
}

// withProcessors sets GOMAXPROCS until the test ends.
func withProcessors(tb testing.TB, n int) {
	before := runtime.GOMAXPROCS(n)
	tb.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

func TestDivideCallsEachIndexOnce(t *testing.T) {
	for _, processors := range []int{1, 2, 4} {
		for threads := 1; threads <= 4; threads++ {
			t.Run(fmt.Sprintf("GOMAXPROCS %d, %d threads", processors, threads), func(t *testing.T) {
				withProcessors(t, processors)
				withThreads(t, threads)
				for n := range 300 {
					seen := make([]int32, n)
					kernel.Divide(threads, n, 7, func(lo, hi int) {
						if lo%7 != 0 || hi%7 != 0 && hi != n {
							t.Errorf("got the part [%d, %d) of %d, want multiples of 7", lo, hi, n)
						}
						for i := lo; i < hi; i++ {
							atomic.AddInt32(&seen[i], 1)
						}
					})
					for i, times := range seen {
						if times != 1 {
							t.Fatalf("index %d of %d was computed %d times", i, n, times)
						}
					}
				}
			})
		}
	}
}

func TestDivideAcceptsNestedAndConcurrentCalls(t *testing.T) {
	withThreads(t, 4)
	const outer, inner = 40, 1000
	var total atomic.Int64
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			kernel.Divide(4, outer, 1, func(lo, hi int) {
				for range hi - lo {
					kernel.Divide(4, inner, 1, func(lo, hi int) { total.Add(int64(hi - lo)) })
				}
			})
		})
	}
	callers.Wait()
	if got := total.Load(); got != 6*outer*inner {
		t.Errorf("nested calls computed %d elements, want %d", got, 6*outer*inner)
	}
}

func TestPanicsOfAnyPartReachTheCaller(t *testing.T) {
	withThreads(t, 3)
	failed := errors.New("part failed")
	for part := range 12 {
		var running atomic.Int32
		got := panics(func() {
			kernel.Divide(3, 12, 1, func(lo, hi int) {
				running.Add(1)
				defer running.Add(-1)
				if lo <= part && part < hi {
					panic(failed)
				}
			})
		})
		if got != failed {
			t.Errorf("a panic in part %d arrived as %v", part, got)
		}
		if n := running.Load(); n != 0 {
			t.Errorf("%d parts still ran after the panic", n)
		}
	}
	var sum atomic.Int64
	kernel.Divide(3, 100, 1, func(lo, hi int) { sum.Add(int64(hi - lo)) })
	if sum.Load() != 100 {
		t.Errorf("after the panics %d elements were computed, want 100", sum.Load())
	}
}

func TestShortSlicesPanicWithAnyNumberOfThreads(t *testing.T) {
	for threads := 1; threads <= 3; threads++ {
		withThreads(t, threads)
		x, y := make([]float32, 1<<20), make([]float32, 1<<20-1)
		if err, ok := panics(func() { kernel.Add(x, y, x) }).(runtime.Error); !ok {
			t.Errorf("with %d threads got %v, want an error of the runtime", threads, err)
		}
	}
}

// helpers returns the number of goroutines that wait for work.
func helpers() int {
	dump := make([]byte, 1<<20)
	return strings.Count(string(dump[:runtime.Stack(dump, true)]), "kernel.help(")
}

func TestHelpersEnd(t *testing.T) {
	withThreads(t, 4)
	for range 100 {
		kernel.Divide(4, 1000, 1, func(lo, hi int) {})
	}
	if n := helpers(); n > 3 {
		t.Errorf("got %d helpers, want at most one less than the threads", n)
	}
	for end := time.Now().Add(time.Minute); helpers() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d helpers have not ended", helpers())
		}
	}
}

// bits32 is x bit by bit.
func bits32(x []float32) (all []uint64) {
	for _, v := range x {
		all = append(all, uint64(math.Float32bits(v)))
	}
	return all
}

func bits64(x []float64) (all []uint64) {
	for _, v := range x {
		all = append(all, math.Float64bits(v))
	}
	return all
}
