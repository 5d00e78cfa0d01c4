package npy

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/safefile"
)

var (
	// ErrFormat is wrapped if a file is not a numpy file, is damaged or truncated, or is
	// inconsistent.
	ErrFormat = errors.New("npy: malformed file")
	// ErrDType is wrapped if the elements of an array are not numbers, or if numpy does not support
	// the dtype of a tensor.
	ErrDType = errors.New("npy: unsupported dtype")
	// ErrName is wrapped if an archive has no array with the given name.
	ErrName = errors.New("npy: no such name")
	// ErrLimit is wrapped if an array needs more memory than the reader allows. The error text
	// names the option that raises the limit.
	ErrLimit = safefile.ErrLimit
)

// The errors are registered, so that errors.Is also works in a process that receives them from its
// worker.
func init() {
	codec.RegisterError("npy.ErrFormat", ErrFormat)
	codec.RegisterError("npy.ErrDType", ErrDType)
	codec.RegisterError("npy.ErrName", ErrName)
	codec.RegisterError("npy.ErrLimit", ErrLimit)
}

// wrapError adds the path of the file and the name of the array to an error, which must not be nil.
func wrapError(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}

// readFull fills b from r. If r ends early, the error wraps [ErrFormat] and
// [io.ErrUnexpectedEOF]. Any other error of r is returned unchanged.
func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return truncatedError(err)
}

// truncatedError converts the end-of-file errors of [io.ReadFull] to an error that wraps
// [ErrFormat] and [io.ErrUnexpectedEOF]. It returns any other err, including nil, unchanged.
func truncatedError(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: file is truncated: %w", ErrFormat, io.ErrUnexpectedEOF)
	}
	return err
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
