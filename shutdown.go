package shoal

import (
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sentinel"
)

// Shutdown permanently ends all activity of Shoal in this process: it ends the processes and groups
// that this process has started, including processes that wait for a job, and leaves the shared
// memory. All goroutines of Shoal have ended when Shutdown returns, or end shortly afterwards.
// [Main] does the same at the end of a program. Shutdown is for programs that only use Shoal for a
// while, and for tests that check for leaked goroutines, for example with goleak.
//
// The caller must have closed pools, managers and loaders, and must not use tensors, queues, locks
// or slices over shared memory afterwards. Functions that start a process then return an error that
// wraps [ErrClosed]. Shutdown is idempotent.
func Shutdown() {
	shutdown.Store(true)
	groups.close()
	reserve.endWaiting(true)
	leaveDomain()
}

// shutdown is set by Shutdown.
var shutdown atomic.Bool

// errShutdown is returned by functions that start a process after Shutdown.
var errShutdown = sentinel.New("shoal: Shutdown was called", ErrClosed)
