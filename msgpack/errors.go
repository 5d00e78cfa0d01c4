package msgpack

import (
	"errors"
	"fmt"
)

var (
	// ErrFormat is wrapped where bytes are no MessagePack, are cut short, or hold an array that does not fit its shape.
	ErrFormat = errors.New("msgpack: malformed")
	// ErrUnsupported is wrapped where a value has no form: arrays of records, text or bfloat16, extension types, channels.
	ErrUnsupported = errors.New("msgpack: unsupported value")
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
