package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// control runs do with c's descriptor, which stays open until do returns. It serves in place of
// os.File.Fd, which puts a file into blocking mode and takes the file away from Go's poller.
func control(c syscall.Conn, do func(fd int) error) error {
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

// poll repeats a call on a non-blocking descriptor until the call need not wait. wait is Read or
// Write of the descriptor's RawConn.
func poll(wait func(func(fd uintptr) (done bool)) error, call func(fd int) error) error {
	var failed error
	err := wait(func(fd uintptr) bool {
		failed = retry(func() error { return call(int(fd)) })
		return failed != unix.EAGAIN
	})
	if err != nil {
		return pollError(err)
	}
	return failed
}

// pollError gives a name to the one error of a file's RawConn that has no name: the file is closed.
func pollError(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return os.ErrClosed
}

// retry repeats a call that a signal interrupted: Go's own preemption sends them at any time.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// missing makes a MissingCallError of the answers of an old kernel and of a seccomp filter.
func missing(call string, err error) error {
	if err == unix.ENOSYS || err == unix.EPERM {
		return &MissingCallError{Call: call, Err: err}
	}
	return err
}
