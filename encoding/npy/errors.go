package npy

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/wire"
)

var (
	// ErrFormat is wrapped where a file is not one of numpy's, is damaged or cut short, or
	// contradicts itself.
	ErrFormat = errors.New("npy: malformed file")
	// ErrDType is wrapped where the elements of an array are not numbers, or numpy does not have
	// the dtype of a tensor.
	ErrDType = errors.New("npy: unsupported dtype")
	// ErrName is wrapped where an archive has no array of the wanted name.
	ErrName = errors.New("npy: no such name")
	// ErrLimit is wrapped where an array would take more memory than its reader allows. The text
	// names the option that allows more.
	ErrLimit = safefile.ErrLimit
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("npy.ErrFormat", ErrFormat)
	wire.RegisterError("npy.ErrDType", ErrDType)
	wire.RegisterError("npy.ErrName", ErrName)
	wire.RegisterError("npy.ErrLimit", ErrLimit)
}

// about says of which file and array an error is.
func about(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}

// readFull fills b. A stream that ends before that is malformed.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return cutShort(err)
}

// cutShort says of the error of io.ReadFull that a stream which ends is malformed.
func cutShort(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it is cut short: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	return err
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
