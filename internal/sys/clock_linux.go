package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns the time since boot on the clock that all processes of the machine share. A
// time.Time loses its monotonic part when it crosses to another process.
func Monotonic() time.Duration { return clock(unix.CLOCK_MONOTONIC) }

// ProcessTime returns how long the threads of this process have computed, together.
func ProcessTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("sys: the kernel lacks a clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
