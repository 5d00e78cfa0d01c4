package sys

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Share returns a duplicate of c's descriptor, close-on-exec, for a program that expects its
// files to block. It makes the open file description blocking, for all its holders, c included.
// The caller must close the returned file.
func Share(c syscall.Conn) (again *os.File, err error) {
	err = withDescriptor(c, func(fd int) error {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if err := unix.SetNonblock(n, false); err != nil {
			unix.Close(n)
			return err
		}
		again = newFile(n, "shared")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("duplicate descriptor: %w", err)
	}
	return again, nil
}

// ShareEnd is [Share] for one end of a pipe: the write end if writes is true, and the read end
// otherwise. The returned file blocks, and has an open file description of its own, so c stays
// non-blocking. ShareEnd needs /proc.
func ShareEnd(c syscall.Conn, writes bool) (again *os.File, err error) {
	mode := unix.O_RDONLY
	if writes {
		mode = unix.O_WRONLY
	}
	err = withDescriptor(c, func(fd int) error {
		return retryInterrupted(func() error {
			// without O_NONBLOCK it would wait for the other end
			n, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.SetNonblock(n, false); err != nil {
				unix.Close(n)
				return err
			}
			again = newFile(n, "shared")
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("duplicate pipe end: %w", err)
	}
	return again, nil
}

// SocketKind returns the domain, the type and the protocol of a socket, as passed to socket(2).
func SocketKind(c syscall.Conn) (family, kind, protocol int, err error) {
	err = withDescriptor(c, func(fd int) (err error) {
		for option, dst := range map[int]*int{unix.SO_DOMAIN: &family, unix.SO_TYPE: &kind,
			unix.SO_PROTOCOL: &protocol} {
			if *dst, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, option); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read socket type: %w", err)
	}
	return family, kind, protocol, nil
}
