//go:build !linux

package sys

import (
	"os"
	"sync/atomic"
	"time"
)

// Affinity needs Linux.
func Affinity() ([]int, error) { return nil, unsupportedError("sched_getaffinity") }

// SetAffinity needs Linux.
func SetAffinity(cpus ...int) error { return unsupportedError("sched_setaffinity") }

// SetNice needs Linux.
func SetNice(n int) error { return unsupportedError("setpriority") }

// Nice needs Linux.
func Nice() (int, error) { return 0, unsupportedError("getpriority") }

// Eventfd needs Linux.
func Eventfd(name string) (*os.File, error) { return nil, unsupportedError("eventfd") }

// FutexWait needs Linux.
func FutexWait(w *atomic.Uint64, old uint32, d time.Duration) error { return unsupportedError("futex") }

// FutexWake needs Linux.
func FutexWake(w *atomic.Uint64) error { return unsupportedError("futex") }

// FutexNap needs Linux.
func FutexNap(w *atomic.Uint64, old uint32, d time.Duration) (interrupted bool) { return false }

// FutexWaitUpper needs Linux.
func FutexWaitUpper(w *atomic.Uint64, old uint32, d time.Duration) error {
	return unsupportedError("futex")
}

// FutexWakeUpper needs Linux.
func FutexWakeUpper(w *atomic.Uint64) error { return unsupportedError("futex") }

var begin = time.Now()

// Monotonic returns the time since this process began. A clock shared by all processes needs Linux.
func Monotonic() time.Duration { return time.Since(begin) }

// ProcessTime returns the time since this process began. A clock of processor time needs Linux.
func ProcessTime() time.Duration { return Monotonic() }

// ProcessTimeOf needs Linux.
func ProcessTimeOf(pid int) (time.Duration, error) {
	return 0, unsupportedError("a clock of a process")
}
