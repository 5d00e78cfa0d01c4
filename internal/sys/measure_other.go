//go:build !linux

package sys

import (
	"os"
	"sync/atomic"
	"time"
)

// Affinity returns an error that wraps [errors.ErrUnsupported]: reading the processor affinity
// needs Linux.
func Affinity() ([]int, error) { return nil, unsupportedError("sched_getaffinity") }

// SetAffinity returns an error that wraps [errors.ErrUnsupported]: setting the processor
// affinity needs Linux.
func SetAffinity(cpus ...int) error { return unsupportedError("sched_setaffinity") }

// SetNice returns an error that wraps [errors.ErrUnsupported]: setting the niceness of all
// threads needs Linux.
func SetNice(n int) error { return unsupportedError("setpriority") }

// Nice returns an error that wraps [errors.ErrUnsupported]: reading the niceness of a thread
// needs Linux.
func Nice() (int, error) { return 0, unsupportedError("getpriority") }

// Eventfd returns an error that wraps [errors.ErrUnsupported]: an eventfd needs Linux.
func Eventfd(name string) (*os.File, error) { return nil, unsupportedError("eventfd") }

// FutexWait returns an error that wraps [errors.ErrUnsupported]: waiting on a futex needs
// Linux.
func FutexWait(w *atomic.Uint64, old uint32, d time.Duration) error { return unsupportedError("futex") }

// FutexWake returns an error that wraps [errors.ErrUnsupported]: waking the waiters of a futex
// needs Linux.
func FutexWake(w *atomic.Uint64) error { return unsupportedError("futex") }

// FutexNap returns false at once: waiting on a futex needs Linux.
func FutexNap(w *atomic.Uint64, old uint32, d time.Duration) (interrupted bool) { return false }

// FutexWaitUpper returns an error that wraps [errors.ErrUnsupported]: waiting on a futex needs
// Linux.
func FutexWaitUpper(w *atomic.Uint64, old uint32, d time.Duration) error {
	return unsupportedError("futex")
}

// FutexWakeUpper returns an error that wraps [errors.ErrUnsupported]: waking the waiters of a
// futex needs Linux.
func FutexWakeUpper(w *atomic.Uint64) error { return unsupportedError("futex") }

var begin = time.Now()

// Monotonic returns the time since this process began. A clock shared by all processes needs Linux.
func Monotonic() time.Duration { return time.Since(begin) }

// ProcessTime returns the time since this process began. A clock of processor time needs Linux.
func ProcessTime() time.Duration { return Monotonic() }

// ProcessTimeOf returns an error that wraps [errors.ErrUnsupported]: reading the processor time
// of another process needs Linux.
func ProcessTimeOf(pid int) (time.Duration, error) {
	return 0, unsupportedError("a clock of a process")
}
