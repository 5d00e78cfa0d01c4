package kernel

import (
	"runtime"
	"sync/atomic"
)

var threads atomic.Int32

// SetThreads sets the number of goroutines that one kernel may use. n must be at least 1; otherwise
// SetThreads panics. The default is GOMAXPROCS. With 1, a kernel runs entirely on the calling
// goroutine. SetThreads may be called concurrently; it does not affect kernels that are running.
//
// No result depends on the number of threads: sums are never divided by it, so results are bitwise
// identical.
func SetThreads(n int) {
	if n < 1 {
		panic("kernel: SetThreads: want at least 1 thread")
	}
	threads.Store(int32(n))
}

// Threads returns the number of goroutines that one kernel may use.
func Threads() int {
	if n := threads.Load(); n > 0 {
		return int(n)
	}
	return runtime.GOMAXPROCS(0)
}

// The cost of work that outweighs giving it to a helper, in operations: for a helper that polls,
// and for one that must be started.
const (
	worthPolling = 1 << 14
	worthOne     = 1 << 16
)

// workerCount returns the number of goroutines, at least 1 and at most [Threads], that are
// worthwhile for work of the given cost in operations that can be divided into parts.
func workerCount(parts, cost int) int {
	worth := worthOne
	if cost < 4*worthOne && team[0].task.Load() == idle {
		worth = worthPolling
	}
	if n := min(parts, cost/worth); n > 1 {
		return min(Threads(), n, maxHelpers+1)
	}
	return 1
}

// runRanges divides [0, total) into n ranges and calls do(worker, lo, hi) for each, on the calling
// goroutine and on helpers. worker is less than n, and concurrent calls have different workers.
// runRanges returns when all calls have returned. If one of them panics, so does runRanges. For n =
// 1 callers should call their function directly, which avoids allocating a closure.
func runRanges(n, total int, do func(worker, lo, hi int)) { runParts(n, n, total, do) }

// runParts is like [runRanges] for n workers, but divides [0, total) into the given number of
// parts, usually more than n: a worker that is late gets fewer of them. If no helper is
// available, it makes one call for all of [0, total).
func runParts(n, parts, total int, do func(worker, lo, hi int)) {
	if n > 1 {
		t := tasks.Get().(*task)
		t.setWork(n, parts, total, do)
		if handed := t.recruit(n - 1); handed > 0 {
			defer t.finish(n-1, handed)
			t.run(0)
			return
		}
		t.reset()
	}
	do(0, 0, total)
}

// Workers returns the number of goroutines, at least 1 and at most [Threads], that are
// worthwhile for work of the given cost in operations, about 30 per nanosecond, that can be
// divided into parts.
func Workers(parts, cost int) int { return workerCount(parts, cost) }

// Divide divides [0, n) between the given number of workers and calls do for each part, on the
// calling goroutine and on others, concurrently. All parts but the last begin and end at a
// multiple of align. Divide returns when all calls have returned. It panics if do panics.
func Divide(workers, n, align int, do func(lo, hi int)) {
	blocks := (n + align - 1) / align
	runParts(workers, min(blocks, workers*partsPerWorker), blocks, func(_, lo, hi int) {
		do(lo*align, min(hi*align, n))
	})
}

// Elementwise kernels divide their elements at multiples of block, so that vector instructions
// process the same elements together for any number of threads.
const block = 64

// elementWorkers returns the number of goroutines that are worthwhile for n elements. cost is
// the number of operations for each element.
func elementWorkers(n, cost int) int { return workerCount(n/block, n*cost) }

// runElements is [Divide] at multiples of block. workers must be at least 2.
func runElements(workers, n int, do func(lo, hi int)) { Divide(workers, n, block, do) }

// partsPerWorker is the number of parts of elementwise work for each worker.
const partsPerWorker = 4
