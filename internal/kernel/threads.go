package kernel

import (
	"runtime"
	"sync"
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

// workerCount returns the number of goroutines that are worthwhile for work of the given cost in
// operations that can be divided into parts.
func workerCount(parts, cost int) int {
	const worthOne = 1 << 16 // operations that outweigh starting and awaiting a goroutine
	if n := min(parts, cost/worthOne); n > 1 {
		return min(Threads(), n)
	}
	return 1
}

// runRanges divides [0, total) into n ranges and calls do(worker, lo, hi) for each, the first on
// the calling goroutine and the others on new goroutines. It returns when all calls have returned.
// For n = 1 callers should call their function directly, which avoids allocating a closure.
func runRanges(n, total int, do func(worker, lo, hi int)) {
	var others sync.WaitGroup
	for w := 1; w < n; w++ {
		others.Go(func() { do(w, w*total/n, (w+1)*total/n) })
	}
	do(0, 0, total/n)
	others.Wait()
}
