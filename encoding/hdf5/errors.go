package hdf5

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// Errors that the functions of this package wrap. They should be tested with [errors.Is].
var (
	// ErrFormat is wrapped if a file is not an HDF5 file, is damaged or truncated, or is
	// inconsistent.
	ErrFormat = errors.New("hdf5: malformed file")
	// ErrUnsupported is wrapped if a file uses an HDF5 feature that this package does not
	// implement, or if a value cannot be represented in HDF5. The error text names the feature or
	// the value.
	ErrUnsupported = errors.New("hdf5: unsupported")
	// ErrText is wrapped if a data set contains strings and must be read with [File.Strings]. It
	// wraps [ErrUnsupported].
	ErrText = fmt.Errorf("%w: text elements", ErrUnsupported)
	// ErrName is wrapped if a data set or a group does not exist, if a new one already exists, or
	// if a name is malformed.
	ErrName = errors.New("hdf5: no such name")
	// ErrLimit is wrapped if a data set needs more memory than the reader allows. The error text
	// names the option that raises the limit.
	ErrLimit = safefile.ErrLimit
	// ErrShape is wrapped if a slab is out of the bounds of its data set or has a different dtype,
	// and if a shape in [Options] is invalid.
	ErrShape = errors.New("hdf5: slab out of range")
)

// The errors are registered, so that errors.Is also works in a process that receives them from its
// worker.
func init() {
	codec.RegisterError("hdf5.ErrFormat", ErrFormat)
	codec.RegisterError("hdf5.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("hdf5.ErrText", ErrText)
	codec.RegisterError("hdf5.ErrName", ErrName)
	codec.RegisterError("hdf5.ErrShape", ErrShape)
	codec.RegisterError("hdf5.ErrLimit", ErrLimit)
}

// wrapError adds the path of the file and the name of the data set to an error, which must not
// be nil.
func wrapError(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
