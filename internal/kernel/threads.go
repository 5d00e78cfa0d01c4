package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

var threads atomic.Int32

// SetThreads sets how many goroutines one kernel may compute with, at least 1; until then it is
// GOMAXPROCS. With 1, a kernel runs on the goroutine that calls it and starts no other. Safe for
// concurrent use; kernels that have begun keep what they began with.
//
// No sum is divided by the number of threads, so results are the same to the last bit whatever it
// is.
func SetThreads(n int) {
	if n < 1 {
		panic("kernel: SetThreads needs at least one thread")
	}
	threads.Store(int32(n))
}

// Threads is how many goroutines one kernel may compute with.
func Threads() int {
	if n := threads.Load(); n > 0 {
		return int(n)
	}
	return runtime.GOMAXPROCS(0)
}

// workers is how many goroutines are worth their start for work that divides into parts and costs
// cost operations.
func workers(parts, cost int) int {
	const worthOne = 1 << 16 // operations that take longer than starting a goroutine and waiting for it
	if n := min(parts, cost/worthOne); n > 1 {
		return min(Threads(), n)
	}
	return 1
}

// fork calls do(worker, lo, hi) for each of the n-th parts of [0, total), all but the first on
// goroutines of their own, and returns when all are done. Callers with n = 1 call their function
// directly: it costs them no closure.
func fork(n, total int, do func(worker, lo, hi int)) {
	var others sync.WaitGroup
	for w := 1; w < n; w++ {
		others.Go(func() { do(w, w*total/n, (w+1)*total/n) })
	}
	do(0, 0, total/n)
	others.Wait()
}
