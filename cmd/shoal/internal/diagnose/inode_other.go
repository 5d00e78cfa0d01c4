//go:build !unix

package diagnose

import "io/fs"

// inodeOf returns 0: only Unix has inodes.
func inodeOf(fs.FileInfo) uint64 { return 0 }

// allocated returns the size of a file.
func allocated(st fs.FileInfo) int64 { return st.Size() }
