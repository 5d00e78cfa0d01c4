package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LockFile takes flock's exclusive lock of f, which lasts until f and all duplicates of its
// descriptor are closed. It does not wait. The error wraps EWOULDBLOCK if another open file
// description has the lock.
func LockFile(f *os.File) error {
	err := withDescriptor(f, func(fd int) error {
		return retryInterrupted(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	})
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
