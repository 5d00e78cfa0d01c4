package nn

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
)

// Faults of a state that is loaded or saved. The error of a load wraps all of its faults, with the
// names of the tensors. Test for them with errors.Is.
var (
	// ErrMissing is wrapped for a parameter or buffer that the state does not have.
	ErrMissing = errors.New("nn: missing from the state")
	// ErrUnexpected is wrapped for a tensor of the state without a parameter or buffer in the
	// module.
	ErrUnexpected = errors.New("nn: unexpected in the state")
	// ErrShape is wrapped for a tensor whose shape is not the parameter's.
	ErrShape = errors.New("nn: shape differs")
	// ErrDType is wrapped for a tensor whose dtype is not the parameter's.
	ErrDType = errors.New("nn: dtype differs")
	// ErrEmpty is wrapped for a module that is saved without parameters because its layers are nil,
	// or with a nil layer in a Sequential.
	ErrEmpty = errors.New("nn: no parameters")
	// ErrFile is wrapped for a file of a format that LoadFile does not read.
	ErrFile = errors.New("nn: unknown kind of file")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("nn.ErrMissing", ErrMissing)
	codec.RegisterError("nn.ErrUnexpected", ErrUnexpected)
	codec.RegisterError("nn.ErrShape", ErrShape)
	codec.RegisterError("nn.ErrDType", ErrDType)
	codec.RegisterError("nn.ErrEmpty", ErrEmpty)
	codec.RegisterError("nn.ErrFile", ErrFile)
}
