package safetensors

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Faults of a file, or of tensors that are to be saved. Test for them with errors.Is.
var (
	// ErrHeader is wrapped where the header breaks the format: its length, its JSON or its fields.
	ErrHeader = errors.New("safetensors: malformed header")
	// ErrOffsets is wrapped where tensors overlap, leave a hole, do not fit their shape or do not
	// fill the file.
	ErrOffsets = errors.New("safetensors: offsets do not fit")
	// ErrDType is wrapped where package tensor does not have a dtype of the file, or the format has
	// no name for the dtype of a tensor.
	ErrDType = errors.New("safetensors: unsupported dtype")
	// ErrName is wrapped where a file has no tensor of the wanted name, or a name cannot be saved.
	ErrName = errors.New("safetensors: no such name")
	// ErrLimit is wrapped where tensors would take more memory than their reader allows. The text
	// names the field or parameter that allows more.
	ErrLimit = safefile.ErrLimit
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("safetensors.ErrHeader", ErrHeader)
	wire.RegisterError("safetensors.ErrOffsets", ErrOffsets)
	wire.RegisterError("safetensors.ErrDType", ErrDType)
	wire.RegisterError("safetensors.ErrName", ErrName)
	wire.RegisterError("safetensors.ErrLimit", ErrLimit)
}

// readFull fills b. A stream that ends before that wraps kind and io.ErrUnexpectedEOF.
func readFull(r io.Reader, b []byte, kind error) error {
	_, err := io.ReadFull(r, b)
	return cutShort(err, kind)
}

// cutShort says of the error of io.ReadFull what is wrong where a stream has ended.
func cutShort(err, kind error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it is cut short: %w", kind, io.ErrUnexpectedEOF)
	}
	return err
}

// about says of which file and tensor an error is.
func about(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}
