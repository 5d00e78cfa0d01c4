package sys

import (
	"errors"
	"slices"
	"syscall"
)

// transientErrnos lists the errors of a machine, a user or a process that lacks a resource for the
// moment.
var transientErrnos = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}

// Transient reports whether a call that failed with err may succeed a moment later, after other
// processes have closed files, ended or freed memory.
func Transient(err error) bool {
	return slices.ContainsFunc(transientErrnos, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}
