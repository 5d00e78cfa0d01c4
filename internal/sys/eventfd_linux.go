package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Eventfd returns a counter that a write adds to and a read takes whole, 8 bytes each. A read waits
// in Go's poller until the counter is not 0. The caller closes it.
func Eventfd(name string) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make eventfd %s: %w", name, err)
	}
	return newFile(fd, name), nil
}
