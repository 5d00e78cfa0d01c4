package testutil_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/test/testutil"
)

// recorder is a test that records how it fails. Its deadline is set by run.
type recorder struct {
	testing.TB
	deadline time.Time
	ctx      context.Context
	cleanups []func()
	log      []string
	fatal    bool
}

func (*recorder) Helper()                       {}
func (*recorder) Name() string                  { return "TestRecorded" }
func (r *recorder) Deadline() (time.Time, bool) { return r.deadline, true }
func (r *recorder) Context() context.Context    { return r.ctx }
func (r *recorder) Cleanup(f func())            { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)           { r.log = append(r.log, fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any)           { r.Error(args...); r.fatal = true; runtime.Goexit() }
func (r *recorder) Errorf(f string, a ...any)   { r.Error(fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any)   { r.Fatal(fmt.Sprintf(f, a...)) }

// run runs test as a test with the deadline, on a goroutine of its own, with its cleanups.
func run(t *testing.T, deadline time.Duration, test func(r *recorder)) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &recorder{deadline: time.Now().Add(deadline), ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			cancel()
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		test(r)
	}()
	<-done
	return r
}

// wantLog fails t unless r has exactly one entry in its log, which has all parts.
func wantLog(t *testing.T, r *recorder, fatal bool, parts ...string) {
	t.Helper()
	if len(r.log) != 1 || r.fatal != fatal {
		t.Fatalf("log %q, fatal %v; want one entry, fatal %v", r.log, r.fatal, fatal)
	}
	for _, p := range parts {
		if !strings.Contains(r.log[0], p) {
			t.Errorf("log %q, want one with %q", r.log[0], p)
		}
	}
}

var errTest = errors.New("test error")

func TestNoError(t *testing.T) {
	passed := run(t, time.Minute, func(r *recorder) { testutil.NoError(r); testutil.NoError(r, nil, nil) })
	if len(passed.log) > 0 {
		t.Errorf("without an error it logs %q", passed.log)
	}
	wantLog(t, run(t, time.Minute, func(r *recorder) {
		testutil.NoError(r, nil, errTest)
		t.Error("the test goes on after an error")
	}), true, "test error")
}

func TestValue(t *testing.T) {
	if passed := run(t, time.Minute, func(r *recorder) {
		if n := testutil.Value(42, nil)(r); n != 42 {
			t.Errorf("got %d, want 42", n)
		}
	}); len(passed.log) > 0 {
		t.Errorf("without an error it logs %q", passed.log)
	}
	wantLog(t, run(t, time.Minute, func(r *recorder) {
		testutil.Value(42, errTest)(r)
		t.Error("the test goes on after an error")
	}), true, "test error")
}

func TestMust(t *testing.T) {
	if n := testutil.Must(42, nil); n != 42 {
		t.Errorf("got %d, want 42", n)
	}
	defer func() {
		if got := recover(); got != errTest {
			t.Errorf("panic with %v, want %v", got, errTest)
		}
	}()
	testutil.Must(0, errTest)
}

func TestErrorIs(t *testing.T) {
	_, err := os.Open(t.TempDir() + "/missing")
	passed := run(t, time.Minute, func(r *recorder) {
		testutil.ErrorIs(r, err, fs.ErrNotExist, err)
		testutil.ErrorIs(r, nil, nil)
	})
	if len(passed.log) > 0 {
		t.Errorf("for a wrapped error it logs %q", passed.log)
	}
	wantLog(t, run(t, time.Minute, func(r *recorder) { testutil.ErrorIs(r, err, fs.ErrNotExist, fs.ErrExist) }),
		false, "missing", fs.ErrExist.Error())
	wantLog(t, run(t, time.Minute, func(r *recorder) { testutil.ErrorIs(r, nil, errTest) }), false, "test error")
	wantLog(t, run(t, time.Minute, func(r *recorder) { testutil.ErrorIs(r, errTest, nil) }), false, "test error")
}

func TestErrorContains(t *testing.T) {
	if passed := run(t, time.Minute, func(r *recorder) {
		testutil.ErrorContains(r, errTest, "test", "error")
	}); len(passed.log) > 0 {
		t.Errorf("for its own text it logs %q", passed.log)
	}
	wantLog(t, run(t, time.Minute, func(r *recorder) { testutil.ErrorContains(r, errTest, "test", "other") }),
		false, "test error", "other")
	wantLog(t, run(t, time.Minute, func(r *recorder) { testutil.ErrorContains(r, nil, "any") }), false,
		"no error", "any")
}

func TestContext_EndsWithTheTest(t *testing.T) {
	var ctx context.Context
	r := run(t, time.Hour, func(r *recorder) {
		ctx = testutil.Context(r)
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > testutil.Timeout {
			t.Errorf("deadline %v, %v, want one within %v", deadline, ok, testutil.Timeout)
		}
		testutil.NoError(t, ctx.Err())
	})
	if len(r.log) > 0 || ctx.Err() != context.Canceled {
		t.Errorf("log %q, error %v, want none and %v", r.log, ctx.Err(), context.Canceled)
	}
}

// hanging is a function to look for in stacks.
func hanging(ctx context.Context) { <-ctx.Done() }

func TestContext_AHangFailsWithStacksBeforeTheDeadline(t *testing.T) {
	var ended time.Time
	hang := func(r *recorder) {
		hanging(testutil.Context(r))
		ended = time.Now()
	}
	r := run(t, 200*time.Millisecond, hang)
	if !ended.Before(r.deadline) {
		t.Errorf("the context ends %v after the deadline", ended.Sub(r.deadline))
	}
	wantLog(t, r, false, "TestRecorded hangs")
	if again := run(t, 20*time.Millisecond, hang); strings.Contains(again.log[0], "goroutine ") {
		t.Errorf("the second hang logs stacks again: %q", again.log)
	}
}

// The stacks are taken before the context ends, so they show what the test waits for.
func TestContext_StacksAreOfOtherGoroutines(t *testing.T) {
	testutil.ForgetDump()
	r := run(t, 200*time.Millisecond, func(r *recorder) {
		begun, never := make(chan struct{}), make(chan struct{})
		defer close(never)
		go blocked(begun, never)
		<-begun
		hanging(testutil.Context(r))
	})
	wantLog(t, r, false, "testutil_test.blocked(", "testutil_test.hanging(", "goroutine ", "testutil_test.go:")
}

// blocked closes begun and waits for c.
func blocked(begun, c chan struct{}) {
	close(begun)
	<-c
}

func TestEventually(t *testing.T) {
	calls := 0
	passed := run(t, time.Minute, func(r *recorder) {
		testutil.Eventually(r, func() bool { calls++; return calls == 5 }, "no five calls")
	})
	if calls != 5 || len(passed.log) > 0 {
		t.Errorf("%d calls, log %q, want 5 and none", calls, passed.log)
	}
	wantLog(t, run(t, 50*time.Millisecond, func(r *recorder) {
		testutil.Eventually(r, func() bool { return false }, "%d blocks are left", 3)
		t.Error("the test goes on")
	}), true, "3 blocks are left")
}

func TestEventuallyNoError(t *testing.T) {
	left := 3
	f := func() error {
		if left > 0 {
			left--
			return fmt.Errorf("%d are left", left+1)
		}
		return nil
	}
	if passed := run(t, time.Minute, func(r *recorder) { testutil.EventuallyNoError(r, f) }); len(passed.log) > 0 {
		t.Errorf("log %q, want none", passed.log)
	}
	calls := 0
	r := run(t, 50*time.Millisecond, func(r *recorder) {
		testutil.EventuallyNoError(r, func() error { calls++; return fmt.Errorf("call %d", calls) })
	})
	wantLog(t, r, true, fmt.Sprintf("call %d", calls))
}

// Polls that come sooner than a timer's resolution would starve what they wait for.
func TestEventually_PollsSlowerAsItWaits(t *testing.T) {
	calls := 0
	run(t, 500*time.Millisecond, func(r *recorder) {
		testutil.Eventually(r, func() bool { calls++; return false }, "never")
	})
	if calls < 5 || calls > 60 {
		t.Errorf("%d calls in half a second, want about 50", calls)
	}
}
