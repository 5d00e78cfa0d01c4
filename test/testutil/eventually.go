package testutil

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// The pauses between two polls double from minPause to maxPause.
const (
	minPause = 50 * time.Microsecond
	maxPause = 10 * time.Millisecond
)

// Eventually calls cond until it returns true. If it has not returned true after [Timeout], or
// shortly before the deadline of the test binary, Eventually ends the test with the message, which
// should describe the condition that does not hold. It must be called from the goroutine of the
// test.
//
// Eventually is for conditions without an event: of other processes, of the garbage collector, of a
// counter. See [EventuallyNoError] for a message with the last values.
func Eventually(tb testing.TB, cond func() bool, format string, args ...any) {
	tb.Helper()
	after, err := poll(tb, func() error {
		if cond() {
			return nil
		}
		return errNotYet
	})
	if err != nil {
		tb.Fatalf("after %v: %s", after, fmt.Sprintf(format, args...))
	}
}

// errNotYet is the error of a condition that does not hold.
var errNotYet = errors.New("the condition does not hold")

// EventuallyNoError is [Eventually] for a function that returns nil if its condition holds, and
// otherwise an error that describes why it must be called again. The test ends with the last
// error.
func EventuallyNoError(tb testing.TB, f func() error) {
	tb.Helper()
	if after, err := poll(tb, f); err != nil {
		tb.Fatalf("after %v: %v", after, err)
	}
}

// poll calls f until it returns nil, and then returns nil. After [Timeout], or shortly before
// the deadline of the test binary, it returns the last error, and for how long it has polled.
func poll(tb testing.TB, f func() error) (after time.Duration, err error) {
	timeout := beforeDeadline(tb, Timeout)
	begin := time.Now()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if err = f(); err == nil {
			return 0, nil
		}
		if after = time.Since(begin); after >= timeout {
			return after.Round(time.Millisecond), err
		}
		time.Sleep(pause)
	}
}
