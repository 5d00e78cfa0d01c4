package pt

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Faults of a file or of a value. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where a file is not one of torch.save, is damaged, or contradicts
	// itself.
	ErrFormat = errors.New("pt: malformed file")
	// ErrUnsupported is wrapped where a file has a value that has no form in Go, or a value has no
	// form in Python. The text names the value.
	ErrUnsupported = value.ErrUnsupported
	// ErrGlobal is wrapped where a pickle names a class or a function that is not on the list of
	// permitted ones. The text has the name.
	ErrGlobal = pickle.ErrGlobal
	// ErrLocation is wrapped where a file has a storage of a device that this process does not
	// have. Options.MapLocation chooses another device.
	ErrLocation = errors.New("pt: no such device")
	// ErrLimit is wrapped where a file would take more memory than its reader allows. The text
	// names the option that allows more.
	ErrLimit = safefile.ErrLimit
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("pt.ErrFormat", ErrFormat)
	wire.RegisterError("pt.ErrUnsupported", ErrUnsupported)
	wire.RegisterError("pt.ErrGlobal", ErrGlobal)
	wire.RegisterError("pt.ErrLocation", ErrLocation)
	wire.RegisterError("pt.ErrLimit", ErrLimit)
	wire.RegisterError("python.ErrKey", python.ErrKey)
}

// unread is the error of a pickle that was not read.
func unread(err error) error {
	if errors.Is(err, pickle.ErrForm) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
