package value

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding/python"
)

// Python types without an equivalent Go type.
type (
	Tuple     = python.Tuple
	Dict      = python.Dict
	Set       = python.Set
	ByteArray = python.ByteArray
	Global    = python.Global
	Record    = python.Record
	Size      = python.Size
	Device    = python.Device
)

// Errors of a conversion. Package torch exports them.
var (
	ErrProtocol    = errors.New("torch: data does not follow the protocol of torch.multiprocessing")
	ErrUnsupported = errors.New("torch: unsupported value")
)

// Malformed returns an error that wraps [ErrProtocol].
func Malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Unsupported returns an error that wraps [ErrUnsupported].
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
