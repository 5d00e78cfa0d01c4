package optim

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
)

// Errors of loading a state dict. The error of a load wraps one of these for each mismatch. Callers
// should test for them with [errors.Is].
var (
	// ErrFormat is wrapped if a value is not a valid state dict.
	ErrFormat = errors.New("optim: not a state dict")
	// ErrClass is wrapped if the state dict belongs to another class of optimizer or schedule.
	ErrClass = errors.New("optim: state of another class")
	// ErrGroups is wrapped if the number of groups differs, or the number of parameters in a group.
	ErrGroups = errors.New("optim: groups differ")
	// ErrMissing is wrapped if a state dict lacks a key.
	ErrMissing = errors.New("optim: missing from the state")
	// ErrUnexpected is wrapped if a state dict has a key that the class does not use.
	ErrUnexpected = errors.New("optim: unexpected in the state")
	// ErrShape is wrapped if the shapes of a state tensor and its parameter differ.
	ErrShape = errors.New("optim: shape differs")
	// ErrDType is wrapped if the dtype of a state tensor is not a float.
	ErrDType = errors.New("optim: dtype differs")
)

// Registered errors keep their identity across processes: [errors.Is] finds them in the process
// that started the worker.
func init() {
	codec.RegisterError("optim.ErrFormat", ErrFormat)
	codec.RegisterError("optim.ErrClass", ErrClass)
	codec.RegisterError("optim.ErrGroups", ErrGroups)
	codec.RegisterError("optim.ErrMissing", ErrMissing)
	codec.RegisterError("optim.ErrUnexpected", ErrUnexpected)
	codec.RegisterError("optim.ErrShape", ErrShape)
	codec.RegisterError("optim.ErrDType", ErrDType)
}
