package pickle

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
)

// Errors that the functions of this package wrap. They should be tested with [errors.Is].
var (
	// ErrFormat is wrapped if the pickle of a Value is damaged, or refers to something other than
	// the tensors of the Value. For an index out of range, the error is also an [*IndexError].
	ErrFormat = errors.New("pickle: malformed message")
	// ErrUnsupported is wrapped if a value has no equivalent in the other language. The error text
	// names the value.
	ErrUnsupported = value.ErrUnsupported
	// ErrLimit is wrapped if a pickle is larger than 1 GiB, is nested deeper than 1000 values, or
	// contains more than 4 Mi values.
	ErrLimit = pickle.ErrLimit
)

// The errors are registered, so that errors.Is also works in a process that receives them from its
// worker.
func init() {
	codec.RegisterError("pickle.ErrFormat", ErrFormat)
	codec.RegisterError("pickle.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("pickle.ErrLimit", ErrLimit)
}

// An IndexError reports a persistent ID with an index that is not one of Value.Tensors.
type IndexError struct {
	Index   int64
	Tensors int // number of tensors in the Value
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("pickle: persistent ID %d of a message with %d tensors, want 0 to %d", e.Index, e.Tensors,
		e.Tensors-1)
}

// Unwrap returns [ErrFormat].
func (e *IndexError) Unwrap() error { return ErrFormat }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// convertError returns err, wrapped together with [ErrUnsupported] or [ErrFormat] if it is a
// corresponding error of the packages that read and write pickles. Other errors are returned
// unchanged.
func convertError(err error) error {
	switch {
	case errors.Is(err, ErrFormat), errors.Is(err, ErrUnsupported), errors.Is(err, ErrLimit):
		return err
	case errors.Is(err, pickle.ErrForm), errors.Is(err, pickle.ErrValue), errors.Is(err, python.ErrKey):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	case errors.Is(err, pickle.ErrFormat), errors.Is(err, value.ErrProtocol):
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return err
}
