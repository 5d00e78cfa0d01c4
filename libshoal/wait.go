//go:build cgo && linux

package main

// #include "native.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// A Note on waits. A wait first spins and naps on the thread of its caller ([arena.ThreadWait]), so
// that a peer wakes this thread itself. If another thread of the process naps already, or the
// thread has a canceller, which cannot end a nap, or the operation cannot nap, a goroutine waits in
// its place, and the thread sleeps in poll(2) until the goroutine is done. In both cases a signal
// handler that runs on the thread ends the wait.

// longestNap is the longest nap. It bounds the delay if a peer dies between two steps of a wakeup.
const longestNap = 50 * time.Millisecond

// forever is a timeout that does not pass.
const forever = time.Duration(-1)

// timeoutOf converts a timeout in seconds. The result is forever if it is negative or longer
// than a century. The error wraps errArgument for NaN.
func timeoutOf(seconds float64) (time.Duration, error) {
	const century = 100 * 365 * 24 * 3600
	switch {
	case math.IsNaN(seconds):
		return 0, fmt.Errorf("%w: the timeout is NaN", errArgument)
	case seconds < 0 || seconds > century:
		return forever, nil
	}
	return time.Duration(math.Ceil(seconds * 1e9)), nil
}

// A wait is a blocking operation: it may be called again after it ended with its context.
type wait func(ctx context.Context) error

// checkPeriod is the time after which a parked wait returns errInterrupted if the program has
// signal handlers: one may have run just before the thread went to sleep, and then the program must
// be able to look at the handler's result. A napping wait does so after each nap.
const checkPeriod = 2 * longestNap

var errLookAtSignals = fmt.Errorf("%w: the program has signal handlers, and may look now whether one has run",
	errInterrupted)

// run runs the operation for at most timeout, which must not be 0 but may be forever. It must be
// called on the thread of the call from C. The error wraps errTimeout, or errInterrupted if a
// signal handler may have run or the thread's canceller was fired; other errors are the
// operation's.
func (w wait) run(timeout time.Duration) error {
	end := time.Time{}
	if timeout != forever {
		end = time.Now().Add(timeout)
	}
	err := w.runUntil(end)
	if err == errTimeout {
		return w.finalTry() // with the error that names the obstacle
	}
	return err
}

// runUntil is [wait.run] with an end instead of a timeout; the zero time means none. It returns
// errTimeout itself after the end.
func (w wait) runUntil(end time.Time) error {
	switch C.shoal_native_cancelled() {
	case C.SHOAL_CANCELLED:
		return fmt.Errorf("%w: the canceller of this thread was fired", errInterrupted)
	case C.SHOAL_NO_CANCELLER:
		if err, over := w.spin(end); over {
			return err
		}
		if err, over := w.nap(end); over {
			return err
		}
	}
	return w.parkBriefly(end)
}

// parkBriefly is like park, but returns errLookAtSignals after checkPeriod if the program has
// signal handlers, so that the caller in C can look whether one has run.
func (w wait) parkBriefly(end time.Time) error {
	look := time.Now().Add(checkPeriod)
	if !end.IsZero() && end.Before(look) || C.shoal_native_has_handlers() == 0 {
		return w.park(end)
	}
	err := w.park(look)
	if err == errTimeout {
		return errLookAtSignals
	}
	return err
}

// finalTry runs the operation with an expired deadline, so that it does not wait. The error of
// an operation that would have to wait wraps errTimeout and names the obstacle.
func (w wait) finalTry() error {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	err := w(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errTimeout, err)
	}
	return err
}

// spinTime is the time that waits poll in addition to package arena, in nanoseconds.
var spinTime atomic.Int64

// setSpin sets spinTime to a number of seconds; a negative number means 0. The error wraps
// errArgument if it is more than 0.01 or NaN.
func setSpin(seconds float64) error {
	if math.IsNaN(seconds) || seconds > 0.01 {
		return fmt.Errorf("set spin: %w: %v seconds, want 0 to 0.01, or a negative number", errArgument, seconds)
	}
	spinTime.Store(int64(max(seconds, 0) * 1e9))
	return nil
}

// spin repeats the operation without waiting, until end or for spinTime. over is true if the
// operation has ended; err is then its result. over is false if the caller must wait instead.
func (w wait) spin(end time.Time) (err error, over bool) {
	most := time.Duration(spinTime.Load())
	if most == 0 {
		return nil, false
	}
	until := time.Now().Add(most)
	if !end.IsZero() && end.Before(until) {
		until = end
	}
	for time.Now().Before(until) {
		if err := w(expired); err == nil || !isContextError(err) {
			return err, true
		}
	}
	return nil, false
}

// nap runs the operation on this thread, and naps, until end unless it is zero. over is false if a
// goroutine must wait instead. If over is true, err is the result of the operation, errTimeout
// after end, or an error that wraps errInterrupted if a signal handler may have run.
func (w wait) nap(end time.Time) (err error, over bool) {
	for {
		most := longestNap
		if !end.IsZero() {
			most = min(most, time.Until(end))
		}
		if most <= 0 {
			return errTimeout, true
		}
		thread := &arena.ThreadWait{Most: most}
		err = w(thread)
		switch {
		case err == nil:
			return nil, true
		case errors.Is(err, arena.ErrInterrupted) && C.shoal_native_has_handlers() != 0:
			return fmt.Errorf("%w: a signal handler ran on this thread", errInterrupted), true
		case errors.Is(err, arena.ErrInterrupted): // by a signal of Go's runtime
			continue
		case !errors.Is(err, arena.ErrNapOver):
			return err, true
		case !thread.Napped:
			return nil, false
		case (end.IsZero() || time.Until(end) > 0) && C.shoal_native_has_handlers() != 0:
			return errLookAtSignals, true
		}
	}
}

// park runs the operation on a goroutine while this thread sleeps, until end unless it is zero.
// It returns the result of the operation, errTimeout after end, or an error that wraps
// errInterrupted if a signal handler ran or the thread's canceller was fired. The operation has
// ended by then.
func (w wait) park(end time.Time) error {
	fd := C.shoal_native_park_fd()
	if fd < 0 {
		return fmt.Errorf("wait: %w: eventfd: error %d: raise the limit of open files (ulimit -n)", errSystem, -fd)
	}
	left := C.int64_t(-1)
	if !end.IsZero() {
		left = C.int64_t(max(time.Until(end), 0))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := w.call(ctx)
		C.shoal_native_signal(fd)
		done <- err // after the signal, so that the drain below removes it
	}()
	how := C.shoal_native_park(left)
	if how != C.SHOAL_PARK_WOKEN {
		cancel()
	}
	err := <-done
	C.shoal_native_drain(fd)
	if !errors.Is(err, context.Canceled) {
		return err
	}
	if how == C.SHOAL_PARK_TIMEOUT {
		return errTimeout
	}
	return fmt.Errorf("%w: a signal handler ran on this thread, or its canceller was fired: %w", errInterrupted, err)
}

// call calls the operation. A panic, which must not leave a goroutine, becomes an error; see
// panicError.
func (w wait) call(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return w(ctx)
}

// runOnce runs an operation that is not repeated, for at most timeout, which may be 0 or
// forever. Its errors are as for [wait.run], but it does not return early because the program
// has signal handlers.
func (w wait) runOnce(timeout time.Duration) error {
	if C.shoal_native_cancelled() == C.SHOAL_CANCELLED {
		return fmt.Errorf("%w: the canceller of this thread was fired", errInterrupted)
	}
	end := time.Time{}
	if timeout != forever {
		end = time.Now().Add(timeout)
	}
	return w.park(end)
}

// runParked is like runOnce, but ends with errInterrupted as [wait.run] does.
func (w wait) runParked(timeout time.Duration) error {
	if C.shoal_native_cancelled() == C.SHOAL_CANCELLED {
		return fmt.Errorf("%w: the canceller of this thread was fired", errInterrupted)
	}
	end := time.Time{}
	if timeout != forever {
		end = time.Now().Add(timeout)
	}
	return w.parkBriefly(end)
}
