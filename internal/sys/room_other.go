//go:build !linux

package sys

import "os"

// FileSystemRoom needs Linux.
func FileSystemRoom(f *os.File) (room int64, err error) { return 0, unsupportedError("fstatfs") }
