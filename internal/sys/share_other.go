//go:build !linux

package sys

import (
	"os"
	"syscall"
)

// Share returns an error that wraps [errors.ErrUnsupported]: sharing a descriptor needs Linux.
func Share(c syscall.Conn) (again *os.File, err error) { return nil, unsupportedError("fcntl") }

// ShareEnd returns an error that wraps [errors.ErrUnsupported]: sharing the end of a pipe needs
// Linux.
func ShareEnd(c syscall.Conn, writes bool) (again *os.File, err error) {
	return nil, unsupportedError("/proc/self/fd")
}

// SocketKind returns an error that wraps [errors.ErrUnsupported]: reading the type of a socket
// needs Linux.
func SocketKind(c syscall.Conn) (family, kind, protocol int, err error) {
	return 0, 0, 0, unsupportedError("getsockopt")
}
