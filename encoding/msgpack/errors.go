package msgpack

import (
	"errors"
	"fmt"
	"io"

	"github.com/shoal-mp/shoal/internal/room"
)

var (
	// ErrFormat is wrapped where bytes are no MessagePack, are cut short, or hold an array that
	// does not fit its shape.
	ErrFormat = errors.New("msgpack: malformed")
	// ErrUnsupported is wrapped where a value has no form: arrays of records, text or bfloat16,
	// extension types, channels.
	ErrUnsupported = errors.New("msgpack: unsupported value")
	// ErrLimit is wrapped where a file asks for more memory than its reader gives; the text names
	// the option that raises that.
	ErrLimit = room.ErrLimit
)

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
