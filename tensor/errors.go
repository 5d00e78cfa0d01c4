package tensor

import (
	"errors"
	"fmt"
	"os"
)

// What the world may do to a tensor. Mistakes in the use of tensors, such as shapes that do not
// fit, are panics.
var (
	// ErrClosed is wrapped where a tensor that was closed is shared or sent.
	ErrClosed = fmt.Errorf("tensor: closed%.0w", os.ErrClosed)
	// ErrDType is wrapped where a name or a number is no dtype.
	ErrDType = errors.New("tensor: unknown dtype")
	// ErrLayout is wrapped where a tensor that arrives has a shape, strides or an offset that its
	// memory has no room for.
	ErrLayout = errors.New("tensor: layout does not fit its memory")
	// ErrAlign is wrapped where a tensor would begin at bytes that are not a multiple of its
	// elements' size.
	ErrAlign = errors.New("tensor: not aligned")
	// ErrFile is wrapped where a file is not, or no longer, what a tensor needs; it comes in an
	// *encoding.FileError.
	ErrFile = errors.New("tensor: file does not fit the tensor")
	// ErrDomain is wrapped where a tensor is sent that is shared in another domain than the
	// process's default one.
	ErrDomain = errors.New("tensor: shared in another domain")
	// ErrForeign is wrapped where memory that came from elsewhere, such as a tensor of PyTorch,
	// would have to move. Send a Clone.
	ErrForeign = errors.New("tensor: its memory belongs to another program")
	// ErrDevice is wrapped where a tensor arrives that is on a device of which this program knows
	// nothing.
	ErrDevice = errors.New("tensor: unknown device")
	// ErrUnsupported is wrapped where a device has no kernel for an operation, or for a dtype. CPU
	// copies a tensor to where there is one.
	ErrUnsupported = errors.New("tensor: not defined on the device")
	// ErrDevices is wrapped by the panic of an operation on tensors of several devices.
	ErrDevices = errors.New("tensor: expected all tensors to be on the same device")
	// ErrNested is wrapped where nested slices have no rectangular shape or hold what is no number,
	// and where they are not what a tensor can be turned into.
	ErrNested = errors.New("tensor: nested slices and a tensor do not match")
	// ErrState is wrapped by Generator.SetState for what State has not returned.
	ErrState = errors.New("tensor: not the state of a generator")
)

// misuse panics with a sentence about a programmer's mistake.
func misuse(format string, args ...any) { panic("tensor: " + fmt.Sprintf(format, args...)) }
