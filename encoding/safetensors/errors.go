package safetensors

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// Errors that the functions of this package wrap. They should be tested with [errors.Is].
var (
	// ErrHeader is wrapped if the length, the JSON or a field of the header is invalid.
	ErrHeader = errors.New("safetensors: malformed header")
	// ErrOffsets is wrapped if tensors overlap, leave gaps, do not match their shapes, or do not
	// fill the file.
	ErrOffsets = errors.New("safetensors: invalid offsets")
	// ErrDType is wrapped if package tensor does not support a dtype in the file, or if the format
	// does not support the dtype of a tensor.
	ErrDType = errors.New("safetensors: unsupported dtype")
	// ErrName is wrapped if a file has no tensor with the given name, or if a name or metadata
	// cannot be saved.
	ErrName = errors.New("safetensors: no such name")
	// ErrLimit is wrapped if tensors need more memory than the reader allows. The error text names
	// the field or parameter that raises the limit.
	ErrLimit = safefile.ErrLimit
)

// The errors are registered, so that errors.Is also works in a process that receives them from its
// worker.
func init() {
	codec.RegisterError("safetensors.ErrHeader", ErrHeader)
	codec.RegisterError("safetensors.ErrOffsets", ErrOffsets)
	codec.RegisterError("safetensors.ErrDType", ErrDType)
	codec.RegisterError("safetensors.ErrName", ErrName)
	codec.RegisterError("safetensors.ErrLimit", ErrLimit)
}

// readFull fills b from r. If r ends early, the error wraps kind and [io.ErrUnexpectedEOF]. Any
// other error of r is returned unchanged.
func readFull(r io.Reader, b []byte, kind error) error {
	_, err := io.ReadFull(r, b)
	return truncatedError(err, kind)
}

// truncatedError converts the end-of-file errors of [io.ReadFull] to an error that wraps kind and
// [io.ErrUnexpectedEOF]. It returns any other err, including nil, unchanged.
func truncatedError(err, kind error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: file is truncated: %w", kind, io.ErrUnexpectedEOF)
	}
	return err
}

// wrapError adds the path of the file and the name of the tensor to an error, which must not be
// nil. Both may be "".
func wrapError(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}
