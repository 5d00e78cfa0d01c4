//go:build unix

package diagnose

import (
	"io/fs"
	"syscall"
)

// inodeOf returns the inode of a file, or 0 if it is not known.
func inodeOf(st fs.FileInfo) uint64 {
	if st != nil {
		if s, ok := st.Sys().(*syscall.Stat_t); ok {
			return uint64(s.Ino)
		}
	}
	return 0
}

// allocated returns the number of bytes that a file occupies.
func allocated(st fs.FileInfo) int64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int64(s.Blocks) * 512
	}
	return st.Size()
}
