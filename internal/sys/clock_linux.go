package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns the time since boot on the clock that all processes of the machine share. A
// time.Time loses its monotonic part when it crosses to another process.
func Monotonic() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

// ProcessTime returns how long the threads of this process have computed, together.
func ProcessTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ProcessTimeOf is ProcessTime of process pid, which may be another one. Process 0 is this one.
func ProcessTimeOf(pid int) (time.Duration, error) {
	const allThreads = 2 // CPUCLOCK_SCHED of a whole process, of the kernel's <linux/posix-timers.h>
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|allThreads), &ts); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("sys: the kernel lacks a clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
