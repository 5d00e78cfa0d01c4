package pickle

import (
	"errors"
	"fmt"
)

// Errors that the functions of this package wrap. They should be tested with [errors.Is].
var (
	// ErrFormat is wrapped if the input is not a pickle of the supported dialect.
	ErrFormat = errors.New("pickle: malformed")
	// ErrLimit is wrapped if a pickle exceeds one of the [Limits].
	ErrLimit = errors.New("pickle: limit exceeded")
	// ErrGlobal is wrapped by every [*GlobalError].
	ErrGlobal = errors.New("pickle: name is not allowed")
	// ErrForm is wrapped if a value in a pickle cannot be represented in Go.
	ErrForm = errors.New("pickle: value has no Go representation")
	// ErrValue is wrapped if a Go value cannot be written.
	ErrValue = errors.New("pickle: value cannot be written")
)

// GlobalError reports a name that a pickle must not use.
type GlobalError struct{ Global Global }

func (e *GlobalError) Error() string {
	return fmt.Sprintf("pickle: name %s is not on the list of allowed names", e.Global)
}

// Unwrap returns [ErrGlobal].
func (e *GlobalError) Unwrap() error { return ErrGlobal }

// SyntaxError reports where decoding failed. Err wraps [ErrFormat], [ErrLimit] or an error of the
// reader.
type SyntaxError struct {
	Offset int64 // offset of the first byte that was not read
	Opcode byte
	Err    error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("read pickle: opcode 0x%02x before byte %d: %v", e.Opcode, e.Offset, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
