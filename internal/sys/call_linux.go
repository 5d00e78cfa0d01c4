package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withDescriptor calls do with c's descriptor, which stays open until do returns, and returns
// the error of do. If c is closed, it returns [os.ErrClosed] without calling do. It must be
// used instead of [os.File.Fd], which puts a file into blocking mode and removes it from Go's
// poller.
func withDescriptor(c syscall.Conn, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return pollError(err)
	}
	return failed
}

// retryWhenReady repeats call on a non-blocking descriptor until it returns nil or an error
// other than EAGAIN, and returns that result. Between the calls it waits in Go's poller. wait
// must be Read or Write of the descriptor's RawConn. If the file is closed meanwhile, the error
// is [os.ErrClosed], and after its deadline it wraps [os.ErrDeadlineExceeded].
func retryWhenReady(wait func(func(fd uintptr) (done bool)) error, call func(fd int) error) error {
	var failed error
	err := wait(func(fd uintptr) bool {
		failed = retryInterrupted(func() error { return call(int(fd)) })
		return failed != unix.EAGAIN
	})
	if err != nil {
		return pollError(err)
	}
	return failed
}

// pollError returns the error of a RawConn as callers should see it: nil and
// [os.ErrDeadlineExceeded] unchanged, and [os.ErrClosed] for all others, because the error of a
// closed file has no name of its own.
func pollError(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return os.ErrClosed
}

// retryInterrupted repeats a call as long as it returns EINTR, and returns its last result.
// Go's own preemption sends signals at any time.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// wrapMissingCall returns a [*MissingCallError] for ENOSYS and EPERM, which an old kernel or a
// seccomp filter returns, and other errors unchanged. call is the name of the system call.
func wrapMissingCall(call string, err error) error {
	if err == unix.ENOSYS || err == unix.EPERM {
		return &MissingCallError{Call: call, Err: err}
	}
	return err
}
