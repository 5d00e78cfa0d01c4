package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular is wrapped if a path names a directory, a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading. It calls stat first, because opening a pipe blocks until
// there is a writer. Errors are [*fs.PathError] and may wrap [ErrNotRegular], or [ErrPointer] for a
// pointer file of Git LFS.
func Open(path string) (*os.File, error) {
	f, err := OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		err = checkPointer(f, st.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenFile is like [Open] with the flags of [os.OpenFile], but does not detect pointer files. The
// file must exist, even if flag contains [os.O_CREATE].
func OpenFile(path string, flag int) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return os.OpenFile(path, flag, 0)
	case mode.IsDir():
		err = fmt.Errorf("%w: it is a directory: name a file in it", ErrNotRegular)
	default:
		err = fmt.Errorf("%w: it is a pipe or a device: copy its contents to a file first", ErrNotRegular)
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}
