package optim

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
)

// Faults of a state dict that is loaded. The error of a load wraps all of its faults. Test for them
// with errors.Is.
var (
	// ErrFormat is wrapped for a value that is not a state dict.
	ErrFormat = errors.New("optim: not a state dict")
	// ErrClass is wrapped for the state dict of an optimizer or a schedule of another class.
	ErrClass = errors.New("optim: state of another class")
	// ErrGroups is wrapped where the number of groups differs, or the number of parameters in one.
	ErrGroups = errors.New("optim: groups differ")
	// ErrMissing is wrapped for a key that a state dict lacks.
	ErrMissing = errors.New("optim: missing from the state")
	// ErrUnexpected is wrapped for a key that the class does not have.
	ErrUnexpected = errors.New("optim: unexpected in the state")
	// ErrShape is wrapped for a tensor whose shape is not its parameter's.
	ErrShape = errors.New("optim: shape differs")
	// ErrDType is wrapped for a tensor whose dtype is not one of floats.
	ErrDType = errors.New("optim: dtype differs")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("optim.ErrFormat", ErrFormat)
	codec.RegisterError("optim.ErrClass", ErrClass)
	codec.RegisterError("optim.ErrGroups", ErrGroups)
	codec.RegisterError("optim.ErrMissing", ErrMissing)
	codec.RegisterError("optim.ErrUnexpected", ErrUnexpected)
	codec.RegisterError("optim.ErrShape", ErrShape)
	codec.RegisterError("optim.ErrDType", ErrDType)
}
