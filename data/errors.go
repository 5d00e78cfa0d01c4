package data

import (
	"errors"
	"fmt"
)

var (
	ErrClosed    = errors.New("data: closed")                         // the Loader was closed
	ErrMagic     = errors.New("data: not an IDX file")                // its first four bytes are not an IDX magic number
	ErrTruncated = errors.New("data: the file ends early")            // fewer bytes than its header promises
	ErrTrailing  = errors.New("data: bytes after the last element")   // more bytes than its header promises
	ErrShape     = errors.New("data: not the shape of this data set") // a sound file, but of something else
)

// A FileError says which file of a data set is no good, and where.
type FileError struct {
	Path   string
	Offset int64 // in bytes, of the decompressed file
	Err    error // wraps one of the package's errors, or is that of the decompressor
}

func (e *FileError) Error() string {
	return fmt.Sprintf("read %s: byte %d: %v; get the file again", e.Path, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }
