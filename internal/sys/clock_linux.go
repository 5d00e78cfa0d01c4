package sys

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic returns the time since boot on the clock that all processes of the machine share. A time.Time loses its monotonic
// part when it crosses to another process.
func Monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("sys: the kernel has no monotonic clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
