package pt

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/room"
)

// What may be wrong with a file or a value. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where a file is not what torch.save writes, is damaged, or is made to
	// deceive.
	ErrFormat = errors.New("pt: malformed file")
	// ErrUnsupported is wrapped where a file has, or a value is, what has no form here; the text
	// names it.
	ErrUnsupported = value.ErrUnsupported
	// ErrGlobal is wrapped where a pickle names what is not on the list of what may be in one; the
	// text has the name.
	ErrGlobal = pickle.ErrGlobal
	// ErrLocation is wrapped where a storage is to be loaded to a device that this process has not.
	// Options.MapLocation maps it.
	ErrLocation = errors.New("pt: no such device")
	// ErrLimit is wrapped where a file asks for more memory than its reader gives; the text names
	// the option that raises that.
	ErrLimit = room.ErrLimit
)

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}
