//go:build !linux

package sys

import (
	"os"
	"syscall"
)

// Share needs Linux.
func Share(c syscall.Conn) (again *os.File, err error) { return nil, unsupported("fcntl") }
