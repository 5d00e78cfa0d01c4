package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FileSystemUsage returns the size of the file system that contains path, and the space in it
// that a process without privileges can use, both in bytes.
func FileSystemUsage(path string) (size, free int64, err error) {
	var st unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Statfs(path, &st) }); err != nil {
		return 0, 0, fmt.Errorf("read usage of the file system of %s: %w", path, err)
	}
	return int64(st.Blocks) * int64(st.Bsize), int64(st.Bavail) * int64(st.Bsize), nil
}
