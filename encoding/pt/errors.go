package pt

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// Errors that the functions of this package wrap. They should be tested with [errors.Is].
var (
	// ErrFormat is wrapped if a file was not written by torch.save, is damaged, or is inconsistent.
	ErrFormat = errors.New("pt: malformed file")
	// ErrUnsupported is wrapped if a value in a file cannot be represented in Go, or a Go value
	// cannot be represented in Python. The error text names the value.
	ErrUnsupported = value.ErrUnsupported
	// ErrGlobal is wrapped if a pickle refers to a class or a function that is not on the list of
	// permitted names. The error text contains the name.
	ErrGlobal = pickle.ErrGlobal
	// ErrLocation is wrapped if a storage was saved on a device that this process does not have.
	// Options.MapLocation selects another device.
	ErrLocation = errors.New("pt: no such device")
	// ErrLimit is wrapped if a file needs more memory than the reader allows. The error text names
	// the option that raises the limit.
	ErrLimit = safefile.ErrLimit
)

// The errors are registered, so that errors.Is also works in a process that receives them from its
// worker.
func init() {
	codec.RegisterError("pt.ErrFormat", ErrFormat)
	codec.RegisterError("pt.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("pt.ErrGlobal", ErrGlobal)
	codec.RegisterError("pt.ErrLocation", ErrLocation)
	codec.RegisterError("pt.ErrLimit", ErrLimit)
	codec.RegisterError("python.ErrKey", python.ErrKey)
}

// convertError wraps an error of package pickle, which must not be nil, in [ErrUnsupported] if a
// value has no Go representation, and otherwise in [ErrFormat].
func convertError(err error) error {
	if errors.Is(err, pickle.ErrForm) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
