package npy

import (
	"errors"
	"fmt"
)

var (
	// ErrFormat is wrapped where a file is not what numpy writes, is damaged or cut short, or is made to deceive.
	ErrFormat = errors.New("npy: malformed file")
	// ErrDType is wrapped where an array has elements that are no numbers, or a tensor a dtype that numpy does not have.
	ErrDType = errors.New("npy: unsupported dtype")
)

// A FileError says which file cannot be read, and why.
type FileError struct {
	Path  string
	Array string // the name in an .npz, or empty
	Err   error  // wraps ErrFormat, ErrDType, or what reading says
}

// Error returns one line.
func (e *FileError) Error() string {
	if e.Array != "" {
		return fmt.Sprintf("load %s: array %q: %v", e.Path, e.Array, e.Err)
	}
	return fmt.Sprintf("load %s: %v", e.Path, e.Err)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
