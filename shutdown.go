package shoal

import (
	"fmt"
	"sync/atomic"
)

// Shutdown ends everything that Shoal has in this process, for good: the processes and groups that
// it has started, also those that wait for a job, and its part in the shared memory. Every
// goroutine of Shoal has ended when Shutdown returns, or ends a moment later. Main does the same at
// the end of a program. So Shutdown is for programs without an end of that kind: those that use
// Shoal for a while, and tests that look for goroutines that were left, such as goleak's.
//
// The caller must have closed pools, managers and loaders, and must use no tensor, queue or lock
// afterwards, nor a slice over shared memory. A call that starts a process then returns an error
// that wraps ErrClosed. Shutdown is idempotent.
func Shutdown() {
	shutdown.Store(true)
	groups.close()
	reserve.rest(true)
	leaveDomain()
}

// shutdown reports whether Shutdown was called.
var shutdown atomic.Bool

// errShutdown is the error of a start after Shutdown.
var errShutdown = fmt.Errorf("shoal: Shutdown was called%.0w", ErrClosed)
