package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// FileSystemRoom returns the number of bytes in the file system of f that a process without
// privileges can still use. It returns -1 if the file system has no limit of its own.
func FileSystemRoom(f *os.File) (room int64, err error) {
	err = withDescriptor(f, func(fd int) error {
		var st unix.Statfs_t
		if err := retryInterrupted(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
			return fmt.Errorf("read free space of the file system of %s: %w", f.Name(), err)
		}
		room = int64(st.Bavail) * int64(st.Bsize)
		if st.Blocks == 0 {
			room = -1
		}
		return nil
	})
	return room, err
}
