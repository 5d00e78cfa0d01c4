package sys

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Share returns another descriptor of c, for a program that expects its files to block: the file blocks from then on, for all who
// have it. The caller closes the descriptor.
func Share(c syscall.Conn) (again *os.File, err error) {
	err = control(c, func(fd int) error {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		again = os.NewFile(uintptr(n), "shared")
		return unix.SetNonblock(n, false)
	})
	if err != nil {
		return nil, fmt.Errorf("share a descriptor: %w", err)
	}
	return again, nil
}
