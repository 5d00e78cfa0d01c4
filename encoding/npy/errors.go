package npy

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/room"
)

var (
	// ErrFormat is wrapped where a file is not what numpy writes, is damaged or cut short, or is
	// made to deceive.
	ErrFormat = errors.New("npy: malformed file")
	// ErrDType is wrapped where an array has elements that are no numbers, or a tensor a dtype that
	// numpy does not have.
	ErrDType = errors.New("npy: unsupported dtype")
	// ErrName is wrapped where an archive has no member of that name.
	ErrName = errors.New("npy: no such name")
	// ErrLimit is wrapped where a file asks for more memory than its reader gives; the text names
	// the option that raises that.
	ErrLimit = room.ErrLimit
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
