//go:build !linux

package sys

import "os"

// FileSystemRoom returns an error that wraps [errors.ErrUnsupported]: reading the number of free
// bytes in the file system of f needs Linux.
func FileSystemRoom(f *os.File) (room int64, err error) { return 0, unsupportedError("fstatfs") }
