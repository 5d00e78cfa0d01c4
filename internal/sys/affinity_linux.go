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

// SetAffinity confines every thread of this process, and those that it starts later, to the given processors. Goroutines
// move between threads, so one thread alone would not do.
func SetAffinity(cpus ...int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	// A thread that one of the others starts meanwhile inherits what that one had: go on until a round finds nobody new.
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
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("run on processors %v only: %w", cpus, err)
			}
		}
	}
	return nil
}
