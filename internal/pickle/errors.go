package pickle

import (
	"errors"
	"fmt"
)

// What may be wrong. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where the bytes are no pickle of the dialect.
	ErrFormat = errors.New("pickle: malformed")
	// ErrLimit is wrapped where a pickle exceeds a limit.
	ErrLimit = errors.New("pickle: beyond the limit")
	// ErrGlobal is wrapped by every *GlobalError.
	ErrGlobal = errors.New("pickle: name is not allowed")
	// ErrForm is wrapped where a pickle has a value that Go has no form of.
	ErrForm = errors.New("pickle: value has no form in Go")
	// ErrValue is wrapped where a value cannot be written.
	ErrValue = errors.New("pickle: value cannot be written")
)

// A GlobalError names what a pickle wanted to use and may not.
type GlobalError struct{ Global Global }

func (e *GlobalError) Error() string {
	return fmt.Sprintf("pickle: %s is not among the names that may be used", e.Global)
}

// Unwrap returns ErrGlobal.
func (e *GlobalError) Unwrap() error { return ErrGlobal }

// A SyntaxError says where in the pickle its reading ended. Err wraps ErrFormat, ErrLimit or an
// error of the reader.
type SyntaxError struct {
	Offset int64 // of the first byte that was not read
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
