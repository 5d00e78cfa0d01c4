//go:build !linux

package sys

import (
	"os"
	"syscall"
)

// Share needs Linux.
func Share(c syscall.Conn) (again *os.File, err error) { return nil, unsupportedError("fcntl") }

// ShareEnd needs Linux.
func ShareEnd(c syscall.Conn, writes bool) (again *os.File, err error) {
	return nil, unsupportedError("/proc/self/fd")
}

// SocketKind needs Linux.
func SocketKind(c syscall.Conn) (family, kind, protocol int, err error) {
	return 0, 0, 0, unsupportedError("getsockopt")
}
