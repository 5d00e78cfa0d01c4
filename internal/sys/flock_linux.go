package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// LockFile takes flock's exclusive lock of f, until f is closed. The error wraps EWOULDBLOCK if
// another file has the lock.
func LockFile(f *os.File) error {
	err := control(f, func(fd int) error {
		return retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	})
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}
