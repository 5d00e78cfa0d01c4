package sys

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Affinity returns the numbers of the processors that this process may run on, in ascending order.
func Affinity() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read CPU affinity: %w", err)
	}
	var cpus []int
	for i := range 8 * len(set) * wordBytes {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus, nil
}

const wordBytes = 8

// SetAffinity confines every thread of this process, and every later thread, to the given
// processors. All threads must be confined, because goroutines move between threads. It returns an
// error that wraps EINVAL if a number is out of range.
func SetAffinity(cpus ...int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		if c < 0 || c >= 8*len(set)*wordBytes {
			return fmt.Errorf("set CPU affinity to %v: %w", cpus, unix.EINVAL)
		}
		set.Set(c)
	}
	err := eachThread(func(tid int) error { return unix.SchedSetaffinity(tid, &set) })
	if err != nil {
		return fmt.Errorf("set CPU affinity to %v: %w", cpus, err)
	}
	return nil
}

// SetNice sets the niceness, -20 to 19, of every thread of this process, and of every later thread.
// A value below the present one needs a privilege. On Linux each thread has its own niceness.
func SetNice(n int) error {
	err := eachThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, n) })
	if err != nil {
		return fmt.Errorf("set niceness %d: %w", n, err)
	}
	return nil
}

// Nice returns the niceness of the calling thread, -20 to 19. The result describes the
// goroutine only while it is locked to its thread.
func Nice() (int, error) {
	// the raw system call returns 20 minus the niceness
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0, fmt.Errorf("read niceness: %w", err)
	}
	return 20 - n, nil
}

// eachThread calls do for every thread of this process. A thread started meanwhile inherits the
// attributes of the thread that started it, so eachThread repeats until a round finds no new
// thread. It stops at the first error, but ignores ESRCH, which means that the thread has
// ended.
func eachThread(do func(tid int) error) error {
	done := make(map[int]bool)
	for fresh := true; fresh; {
		fresh = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		for _, t := range threads {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[tid] {
				continue
			}
			done[tid], fresh = true, true
			if err := do(tid); err != nil && err != unix.ESRCH {
				return err
			}
		}
	}
	return nil
}
