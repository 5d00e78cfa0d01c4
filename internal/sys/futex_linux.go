package sys

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2) on a word that several processes map.
const (
	futexWait = 0
	futexWake = 1
)

// FutexWait sleeps while the lower half of w is old, until [FutexWake] or for at most d. It
// blocks the thread. It returns nil in all these cases, and may return early, so the caller
// must check w again: https://man7.org/linux/man-pages/man2/futex.2.html.
func FutexWait(w *atomic.Uint64, old uint32, d time.Duration) error {
	return futexSleep(lowerHalf(w), old, d)
}

// FutexNap is like [FutexWait], and reports whether a signal handler that ran on the calling
// thread ended the wait. It ignores errors.
func FutexNap(w *atomic.Uint64, old uint32, d time.Duration) (interrupted bool) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(lowerHalf(w)), futexWait, uintptr(old),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	return errno == unix.EINTR
}

func futexSleep(half unsafe.Pointer, old uint32, d time.Duration) error {
	ts := unix.NsecToTimespec(int64(d))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(half), futexWait, uintptr(old),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch errno {
	case 0, unix.EAGAIN, unix.EINTR, unix.ETIMEDOUT:
		return nil
	}
	return fmt.Errorf("futex wait: %w", errno)
}

// FutexWaitUpper is [FutexWait] for the upper half of w: it sleeps while that half is old,
// until [FutexWakeUpper] or for at most d.
func FutexWaitUpper(w *atomic.Uint64, old uint32, d time.Duration) error {
	return futexSleep(upperHalf(w), old, d)
}

// FutexWake wakes one thread, of any process, that waits on the lower half of w. It is not an
// error if there is none.
func FutexWake(w *atomic.Uint64) error { return futexRouse(lowerHalf(w), 1) }

// FutexWakeUpper wakes all threads, of any process, that wait on the upper half of w.
func FutexWakeUpper(w *atomic.Uint64) error { return futexRouse(upperHalf(w), math.MaxInt32) }

// futexRouse wakes at most most threads that wait on the 32-bit word half. A raw system call is
// appropriate because it never waits.
func futexRouse(half unsafe.Pointer, most uintptr) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(half), futexWake, most, 0, 0, 0); errno != 0 {
		return fmt.Errorf("futex wake: %w", errno)
	}
	return nil
}

// lowerHalf returns the address of the lower 32 bits, which the kernel compares. Every machine that
// this package supports on Linux is little endian, so it is the address of the word.
func lowerHalf(w *atomic.Uint64) unsafe.Pointer { return unsafe.Pointer(w) }

func upperHalf(w *atomic.Uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(w), 4) }
