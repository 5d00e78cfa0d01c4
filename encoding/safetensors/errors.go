package safetensors

import (
	"errors"
	"fmt"

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

// FormatError says which file is malformed, and how.
type FormatError struct {
	Path   string
	Tensor string // the name of the tensor, or empty where it is the header as a whole
	Err    error  // wraps ErrHeader, ErrOffsets or ErrDType
}

// Error returns one line.
func (e *FormatError) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("read %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("read %s: tensor %q: %v", e.Path, e.Tensor, e.Err)
}

// Unwrap returns what is wrong, for errors.Is.
func (e *FormatError) Unwrap() error { return e.Err }
