package hdf5

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/room"
)

// What may be wrong. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where a file is no HDF5, is damaged or cut short, or is made to deceive.
	ErrFormat = errors.New("hdf5: malformed file")
	// ErrUnsupported is wrapped where a file uses what this package does not read, which the text
	// names, or a tensor has no form.
	ErrUnsupported = errors.New("hdf5: unsupported")
	// ErrText is wrapped where a data set is text. It wraps ErrUnsupported.
	ErrText = fmt.Errorf("%w: elements that are text", ErrUnsupported)
	// ErrName is wrapped where a file has no data set of that name, or has it already, or a name is
	// none.
	ErrName = errors.New("hdf5: no such name")
	// ErrLimit is wrapped where a file asks for more memory than its reader gives; the text names
	// the option that raises that.
	ErrLimit = room.ErrLimit
	// ErrShape is wrapped where a slab is not in its data set, or has another dtype.
	ErrShape = errors.New("hdf5: slab does not fit")
)

// about says of which file and data set an error is.
func about(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
