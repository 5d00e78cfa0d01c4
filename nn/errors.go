package nn

import "errors"

// What may be wrong with a state that is loaded. All problems of a state are reported at once, each
// with its name.
var (
	// ErrMissing is wrapped for a parameter that the state does not have.
	ErrMissing = errors.New("nn: missing from the state")
	// ErrUnexpected is wrapped for a tensor of the state that the module has no parameter for.
	ErrUnexpected = errors.New("nn: unexpected in the state")
	// ErrShape is wrapped for a tensor that has another shape than the parameter.
	ErrShape = errors.New("nn: shape differs")
	// ErrDType is wrapped for a tensor that has another dtype than the parameter.
	ErrDType = errors.New("nn: dtype differs")
	// ErrFile is wrapped for a file that is none of those which LoadFile reads.
	ErrFile = errors.New("nn: unknown kind of file")
)
