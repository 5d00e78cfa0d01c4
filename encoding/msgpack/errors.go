package msgpack

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/safefile"
)

var (
	// ErrFormat is wrapped if the input is not MessagePack, is truncated, or contains an array with
	// elements that do not match its shape.
	ErrFormat = errors.New("msgpack: malformed")
	// ErrUnsupported is wrapped if a value cannot be represented in MessagePack (a channel), in
	// numpy (a bfloat16 tensor) or in Go (an array of records or text, an extension type).
	ErrUnsupported = errors.New("msgpack: unsupported value")
	// ErrLimit is wrapped if a value needs more memory than the reader allows. The error text names
	// the option that raises the limit.
	ErrLimit = safefile.ErrLimit
)

// The errors are registered, so that errors.Is also works in a process that receives them from its
// worker.
func init() {
	codec.RegisterError("msgpack.ErrFormat", ErrFormat)
	codec.RegisterError("msgpack.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("msgpack.ErrLimit", ErrLimit)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// wrapFormat wraps an error of decoding a value, which must not be nil, in [ErrFormat]. It replaces
// [io.EOF] by [io.ErrUnexpectedEOF].
func wrapFormat(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
