package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns the time since boot on CLOCK_MONOTONIC, the clock that all processes of the
// machine share. A [time.Time] loses its monotonic part when it is sent to another process.
func Monotonic() time.Duration { return readClock(unix.CLOCK_MONOTONIC) }

// ProcessTime returns the processor time consumed by all threads of this process.
func ProcessTime() time.Duration { return readClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// ProcessTimeOf returns the processor time consumed by process pid. Process 0 is this one.
func ProcessTimeOf(pid int) (time.Duration, error) {
	const allThreads = 2 // CPUCLOCK_SCHED of a whole process, in <linux/posix-timers.h>
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|allThreads), &ts); err != nil {
		return 0, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

func readClock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("sys: read clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
