package safefile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
)

// ErrPointer is wrapped where a file is only a pointer of Git LFS: the repository was cloned
// without the content of its large files. See
// https://github.com/git-lfs/git-lfs/blob/v3.7.0/docs/spec.md.
var ErrPointer = errors.New("file is a Git LFS pointer: run git lfs pull to get its contents")

// maxPointer is the smallest size that rules out a pointer file.
const maxPointer = 1024

var pointerStart = []byte("version https://git-lfs.github.com/spec/")

// IsPointer reports whether data, the whole content of a file, is a pointer of Git LFS.
func IsPointer(data []byte) bool {
	return len(data) < maxPointer && bytes.HasPrefix(data, pointerStart)
}

// checkPointer returns an error that wraps [ErrPointer] if f, a file of size bytes, is a
// pointer. It does not move the file offset. It returns nil if f cannot be read.
func checkPointer(f *os.File, size int64) error {
	if size < int64(len(pointerStart)) || size >= maxPointer {
		return nil
	}
	start := make([]byte, len(pointerStart))
	if n, _ := f.ReadAt(start, 0); !IsPointer(start[:n]) {
		return nil
	}
	return &fs.PathError{Op: "open", Path: f.Name(), Err: ErrPointer}
}
