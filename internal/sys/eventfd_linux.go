package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Eventfd returns an eventfd: a counter that a write adds to and a read resets. Both transfer 8
// bytes. A read waits in Go's poller until the counter is not 0. The name appears only in
// errors. The caller must close the file.
func Eventfd(name string) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create eventfd %s: %w", name, err)
	}
	return newFile(fd, name), nil
}
