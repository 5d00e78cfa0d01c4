package optim

import "errors"

// What may be wrong with a state dict that is loaded. All problems of one are reported at once.
var (
	// ErrFormat is wrapped for a value that is no state dict.
	ErrFormat = errors.New("optim: not a state dict")
	// ErrClass is wrapped for the state dict of an optimizer, or a schedule, of another class.
	ErrClass = errors.New("optim: state of another class")
	// ErrGroups is wrapped where groups are more or fewer, or have more or fewer parameters.
	ErrGroups = errors.New("optim: groups differ")
	// ErrMissing is wrapped for what a state dict has to have, and has not.
	ErrMissing = errors.New("optim: missing from the state")
	// ErrUnexpected is wrapped for a key that the class does not have.
	ErrUnexpected = errors.New("optim: unexpected in the state")
	// ErrShape is wrapped for a tensor that has another shape than its parameter.
	ErrShape = errors.New("optim: shape differs")
	// ErrDType is wrapped for a tensor that is not of floats.
	ErrDType = errors.New("optim: dtype differs")
)
