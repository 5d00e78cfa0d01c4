package testutil

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// Timeout is how long [Context] and [Eventually] wait. It is far more than any wait should take, on
// a slow machine and with the race detector too.
const Timeout = time.Minute

// maxGrace bounds the time before the test binary's deadline that is kept for the report. It is
// less if there is little time until the deadline.
const maxGrace = 5 * time.Second

// Context returns a context that ends when the test ends. If the test still runs after [Timeout],
// or shortly before the deadline of the test binary, the context ends with an error that says so.
// The test then fails, and the first test of a process that fails so also logs the stacks of all
// goroutines.
//
// Context must not be called within a bubble of [testing/synctest], where tests have no deadline.
func Context(tb testing.TB) context.Context {
	tb.Helper()
	return ContextWithTimeout(tb, Timeout)
}

// ContextWithTimeout is [Context] with another timeout, for a test that needs more time, such as
// one that starts a Python.
func ContextWithTimeout(tb testing.TB, timeout time.Duration) context.Context {
	tb.Helper()
	timeout = beforeDeadline(tb, timeout)
	hang := &hangError{tb.Name(), timeout}
	ctx, cancel := context.WithCancelCause(tb.Context())
	deadline := time.Now().Add(timeout)
	reported := make(chan struct{})
	timer := time.AfterFunc(timeout, func() {
		defer close(reported)
		if ctx.Err() == nil {
			reportHang(tb, hang) // before the context ends, when the stacks still show what hangs
			cancel(hang)
		}
	})
	tb.Cleanup(func() {
		if !timer.Stop() {
			<-reported // the test must not end before its last report
		}
		cancel(nil)
	})
	return deadlineContext{ctx, deadline}
}

// A deadlineContext is a context that a timer cancels. It reports the time of that as its
// deadline.
type deadlineContext struct {
	context.Context
	deadline time.Time
}

func (c deadlineContext) Deadline() (time.Time, bool) { return c.deadline, true }

// A hangError is the cause of the end of a test's context if the test ran for too long.
type hangError struct {
	test    string
	timeout time.Duration
}

func (e *hangError) Error() string {
	return fmt.Sprintf("test %s hangs: it has not ended after %v", e.test, e.timeout)
}

// dumped is set once the stacks were logged. The stacks of later hangs add little, because the
// first dump has all goroutines.
var dumped atomic.Bool

func reportHang(tb testing.TB, hang error) {
	if dumped.Swap(true) {
		tb.Error(hang)
		return
	}
	tb.Errorf("%v\n%s", hang, stacks())
}

// stacks returns the stacks of all goroutines, up to 64 MiB.
func stacks() []byte {
	const most = 64 << 20
	for buf := make([]byte, 1<<20); ; buf = make([]byte, 2*len(buf)) {
		if n := runtime.Stack(buf, true); n < len(buf) || len(buf) >= most {
			return buf[:n]
		}
	}
}

// beforeDeadline returns timeout, or a shorter one that ends before the deadline of the test
// binary, with some time to spare. A benchmark has no deadline.
func beforeDeadline(tb testing.TB, timeout time.Duration) time.Duration {
	t, ok := tb.(interface{ Deadline() (time.Time, bool) })
	if !ok { // a benchmark
		return timeout
	}
	deadline, ok := t.Deadline()
	if !ok {
		return timeout
	}
	left := time.Until(deadline)
	return min(timeout, left-min(maxGrace, left/10))
}
