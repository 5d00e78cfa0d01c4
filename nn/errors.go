package nn

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
)

// Errors of loading and saving a state. The error of a load wraps one of these for each mismatch,
// with the name of the tensor. Callers should test for them with [errors.Is].
var (
	// ErrMissing is wrapped if the state lacks a parameter or buffer of the module.
	ErrMissing = errors.New("nn: missing from the state")
	// ErrUnexpected is wrapped if the state has a tensor that is no parameter or buffer of the
	// module.
	ErrUnexpected = errors.New("nn: unexpected in the state")
	// ErrShape is wrapped if the shapes of a tensor and its parameter differ.
	ErrShape = errors.New("nn: shape differs")
	// ErrDType is wrapped if the dtypes of a tensor and its parameter differ.
	ErrDType = errors.New("nn: dtype differs")
	// ErrEmpty is wrapped if a module without parameters is saved because its layers are nil, or if
	// a Sequential contains a nil layer.
	ErrEmpty = errors.New("nn: no parameters")
	// ErrFile is wrapped if LoadFile does not support the format of a file.
	ErrFile = errors.New("nn: unsupported file format")
)

// Registered errors keep their identity across processes: [errors.Is] finds them in the process
// that started the worker.
func init() {
	codec.RegisterError("nn.ErrMissing", ErrMissing)
	codec.RegisterError("nn.ErrUnexpected", ErrUnexpected)
	codec.RegisterError("nn.ErrShape", ErrShape)
	codec.RegisterError("nn.ErrDType", ErrDType)
	codec.RegisterError("nn.ErrEmpty", ErrEmpty)
	codec.RegisterError("nn.ErrFile", ErrFile)
}
