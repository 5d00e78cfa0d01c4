package sys

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Affinity returns the numbers of the processors on which this process may run, in ascending order.
func Affinity() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the processors of this process: %w", err)
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
// processors. To confine one thread is not enough, because goroutines move between threads.
func SetAffinity(cpus ...int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		if c < 0 || c >= 8*len(set)*wordBytes {
			return fmt.Errorf("run on processors %v only: %w", cpus, unix.EINVAL)
		}
		set.Set(c)
	}
	err := eachThread(func(tid int) error { return unix.SchedSetaffinity(tid, &set) })
	if err != nil {
		return fmt.Errorf("run on processors %v only: %w", cpus, err)
	}
	return nil
}

// SetNice sets the niceness of every thread of this process, and of every later thread: -20 to 19.
// A value below the present one needs the privilege. On Linux each thread has its own niceness.
func SetNice(n int) error {
	err := eachThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, n) })
	if err != nil {
		return fmt.Errorf("set niceness %d: %w", n, err)
	}
	return nil
}

// Nice returns the niceness of the thread that calls.
func Nice() (int, error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the bare call: 20 less the niceness
	if err != nil {
		return 0, fmt.Errorf("read niceness: %w", err)
	}
	return 20 - n, nil
}

// eachThread calls do for every thread of this process. A thread that another one starts meanwhile
// inherits what that one had. So eachThread goes on until a round finds no new thread.
func eachThread(do func(tid int) error) error {
	done := make(map[int]bool)
	for fresh := true; fresh; {
		fresh = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list the threads of this process: %w", err)
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
