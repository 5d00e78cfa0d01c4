package msgpack

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/wire"
)

var (
	// ErrFormat is wrapped where bytes are not MessagePack, are cut short, or hold an array whose
	// elements do not fit its shape.
	ErrFormat = errors.New("msgpack: malformed")
	// ErrUnsupported is wrapped where a value has no form in MessagePack (a channel), in numpy (a
	// tensor of bfloat16) or in Go (an array of records or text, an extension type).
	ErrUnsupported = errors.New("msgpack: unsupported value")
	// ErrLimit is wrapped where a value would take more memory than its reader allows. The text
	// names the parameter that allows more.
	ErrLimit = safefile.ErrLimit
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("msgpack.ErrFormat", ErrFormat)
	wire.RegisterError("msgpack.ErrUnsupported", ErrUnsupported)
	wire.RegisterError("msgpack.ErrLimit", ErrLimit)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// damaged says that a value is malformed since err was met in it, as a stream's end is.
func damaged(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
