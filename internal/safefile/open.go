package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular is wrapped where a path names something else: a folder, a pipe, a device.
var ErrNotRegular = errors.New("not a regular file")

// Open is os.Open for regular files. It looks before it opens, since a pipe without a writer opens
// only when one comes. The error is a *fs.PathError, and may wrap ErrNotRegular or ErrPointer.
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

// OpenFile is Open with the flags of os.OpenFile, which creates nothing.
func OpenFile(path string, flag int) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return os.OpenFile(path, flag, 0)
	case mode.IsDir():
		err = fmt.Errorf("%w: it is a folder; name a file in it", ErrNotRegular)
	default:
		err = fmt.Errorf("%w: it is a pipe or a device; copy what comes from it to a file", ErrNotRegular)
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: err}
}
