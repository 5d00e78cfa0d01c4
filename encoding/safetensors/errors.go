package safetensors

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/room"
)

// What may be wrong with a file or with what is to be saved.
var (
	// ErrHeader is wrapped where the header is not what the format asks for: its length, its JSON,
	// its fields.
	ErrHeader = errors.New("safetensors: malformed header")
	// ErrOffsets is wrapped where tensors overlap, leave a hole, do not fit their shape or do not
	// fill the file.
	ErrOffsets = errors.New("safetensors: offsets do not fit")
	// ErrDType is wrapped where a dtype is unknown here, or has no name in the format.
	ErrDType = errors.New("safetensors: unsupported dtype")
	// ErrName is wrapped where a file has no tensor of that name, or a name cannot be saved.
	ErrName = errors.New("safetensors: no such name")
	// ErrLimit is wrapped where a file asks for more memory than its reader gives; the text names
	// the field that raises that.
	ErrLimit = room.ErrLimit
)

// readFull fills b. A stream that ends before that wraps kind and io.ErrUnexpectedEOF.
func readFull(r io.Reader, b []byte, kind error) error {
	_, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: it is cut short: %w", kind, io.ErrUnexpectedEOF)
	}
	return err
}

// about says of which file and tensor an error is.
func about(path, name string, err error) error {
	return &encoding.FileError{Path: path, Name: name, Err: err}
}
