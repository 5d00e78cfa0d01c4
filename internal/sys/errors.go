package sys

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrNoDescriptors means that a peer sent descriptors and this process had no room for all of them.
// None was kept. The user should raise RLIMIT_NOFILE, or the process should close files.
var ErrNoDescriptors = errors.New(
	"sys: too many open files to receive descriptors: raise the limit of open files (ulimit -n), or close some")

// ErrTooManyFiles means that a peer sent more descriptors than the message may carry. None was
// kept.
var ErrTooManyFiles = errors.New("sys: received more descriptors than the message can contain")

// A MissingCallError means that the kernel, or a filter in front of it, does not offer a call that
// has no substitute. [errors.Is] reports it as [errors.ErrUnsupported].
type MissingCallError struct {
	Call string // as in the manual: "memfd_create"
	Err  error  // the kernel's error
}

// Error names the call and the oldest kernel that is known to work.
func (e *MissingCallError) Error() string {
	return fmt.Sprintf("sys: %s is not available (%v): want Linux 5.10 or later, and a seccomp filter that allows "+
		"the call",
		e.Call, e.Err)
}

// Unwrap returns the kernel's error.
func (e *MissingCallError) Unwrap() error { return e.Err }

// Is reports whether target is [errors.ErrUnsupported].
func (e *MissingCallError) Is(target error) bool { return target == errors.ErrUnsupported }

// Advised adds advice to the error of starting a process or opening a file, if a limit of this
// process, its user or the machine has been reached: EMFILE, ENFILE or EAGAIN. The result wraps
// err. Advised returns other errors, and nil, unchanged.
func Advised(err error) error {
	for _, limit := range []struct {
		errno  syscall.Errno
		advice string
	}{
		{syscall.EMFILE, "raise the limit of open files (ulimit -n), or close some"},
		{syscall.ENFILE, "raise the machine's limit of open files (sysctl fs.file-max)"},
		{syscall.EAGAIN, "raise the process limit (ulimit -u, or pids.max of the control group), or start fewer " +
			"processes"},
	} {
		if errors.Is(err, limit.errno) {
			return fmt.Errorf("%w; %s", err, limit.advice)
		}
	}
	return err
}

// ErrorNumber returns the error number of the system call that failed with err, or 0 if err
// wraps no [syscall.Errno].
func ErrorNumber(err error) int {
	var errno syscall.Errno
	errors.As(err, &errno)
	return int(errno)
}
