package hdf5

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Faults of a file, or of a call. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where a file is not HDF5, is damaged or cut short, or contradicts
	// itself.
	ErrFormat = errors.New("hdf5: malformed file")
	// ErrUnsupported is wrapped where a file uses a feature of HDF5 that this package does not
	// read, and where HDF5 has no form for a value. The text names the feature or the value.
	ErrUnsupported = errors.New("hdf5: unsupported")
	// ErrText is wrapped where a data set is text, which File.Strings reads. It wraps
	// ErrUnsupported.
	ErrText = fmt.Errorf("%w: elements that are text", ErrUnsupported)
	// ErrName is wrapped where a file has no data set of the wanted name, has one of the name of a
	// new data set, or where a name is malformed.
	ErrName = errors.New("hdf5: no such name")
	// ErrLimit is wrapped where a data set would take more memory than its reader allows. The text
	// names the option that allows more.
	ErrLimit = safefile.ErrLimit
	// ErrShape is wrapped where a slab does not lie in its data set, or has another dtype than the
	// data set.
	ErrShape = errors.New("hdf5: slab does not fit")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("hdf5.ErrFormat", ErrFormat)
	wire.RegisterError("hdf5.ErrUnsupported", ErrUnsupported)
	wire.RegisterError("hdf5.ErrText", ErrText)
	wire.RegisterError("hdf5.ErrName", ErrName)
	wire.RegisterError("hdf5.ErrShape", ErrShape)
	wire.RegisterError("hdf5.ErrLimit", ErrLimit)
}

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
