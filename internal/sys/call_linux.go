package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withDescriptor calls do with c's descriptor, which stays open until do returns. It must be used
// instead of [os.File.Fd], which puts a file into blocking mode and removes it from Go's poller.
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

// retryWhenReady repeats call on a non-blocking descriptor until it returns an error other than
// EAGAIN. wait must be Read or Write of the descriptor's RawConn.
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

// pollError converts the error of a closed file's RawConn, which has no name of its own, to
// [os.ErrClosed]. It keeps [os.ErrDeadlineExceeded].
func pollError(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return os.ErrClosed
}

// retryInterrupted repeats a call that a signal interrupted. Go's own preemption sends signals at
// any time.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// wrapMissingCall returns a [*MissingCallError] for the errors returned by an old kernel or a
// seccomp filter, and other errors unchanged.
func wrapMissingCall(call string, err error) error {
	if err == unix.ENOSYS || err == unix.EPERM {
		return &MissingCallError{Call: call, Err: err}
	}
	return err
}
