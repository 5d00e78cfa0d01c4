package tensor

import (
	"errors"
	"fmt"
	"os"
)

// Errors that operations and functions of this package return or panic with. [Catch] returns the
// error of an operation that panicked.
var (
	// ErrMisuse is wrapped by the panics of all mistakes in a call, in this package and in packages
	// autograd, nn and optim. ErrShape, ErrIndex, ErrArgument and ErrOperand wrap it.
	ErrMisuse = errors.New("tensor: misuse")
	// ErrShape is wrapped where shapes or strides do not fit each other or the operation.
	ErrShape = fmt.Errorf("tensor: shapes do not fit%.0w", ErrMisuse)
	// ErrIndex is wrapped where an index or a dimension is out of range, or a dimension is named
	// twice.
	ErrIndex = fmt.Errorf("tensor: index out of range%.0w", ErrMisuse)
	// ErrArgument is wrapped where a number is out of range for the operation, such as a negative
	// standard deviation.
	ErrArgument = fmt.Errorf("tensor: argument out of range%.0w", ErrMisuse)
	// ErrOperand is wrapped where an operation is not defined for the dtype of a tensor.
	ErrOperand = fmt.Errorf("tensor: not defined for the dtype%.0w", ErrMisuse)
	// ErrMemory is wrapped where a tensor or nested slices would have more bytes than this process
	// can have: all memory of the machine or of its control group. A view may have more elements
	// than its storage, so a small message can describe such a tensor.
	ErrMemory = errors.New("tensor: not enough memory")
	// ErrClosed is wrapped where a closed tensor, or none, is used, shared, sent, saved or loaded
	// into.
	ErrClosed = fmt.Errorf("tensor: closed%.0w", os.ErrClosed)
	// ErrDType is wrapped where a name or a number is not a dtype.
	ErrDType = errors.New("tensor: unknown dtype")
	// ErrLayout is wrapped where the shape, strides and offset of a tensor that arrives reach
	// beyond its memory.
	ErrLayout = errors.New("tensor: layout does not fit its memory")
	// ErrAlign is wrapped where the offset of a tensor in bytes is not a multiple of its elements'
	// size.
	ErrAlign = errors.New("tensor: not aligned")
	// ErrFile is wrapped where a file is too short for a tensor, is cut short later, is not a
	// regular file, or was replaced by another. It comes in an *encoding.FileError.
	ErrFile = errors.New("tensor: file does not fit the tensor")
	// ErrDomain is wrapped where a tensor is sent whose memory is not in the default domain of this
	// process.
	ErrDomain = errors.New("tensor: shared in another domain")
	// ErrForeign is wrapped where the memory of another program, such as a tensor of PyTorch, would
	// have to move. Send a Clone.
	ErrForeign = errors.New("tensor: its memory belongs to another program")
	// ErrDevice is wrapped where the device of a tensor that arrives is unknown to this program.
	ErrDevice = errors.New("tensor: unknown device")
	// ErrUnsupported is wrapped where a device has no kernel for an operation or a dtype. The host
	// has all of them: copy the tensor with CPU.
	ErrUnsupported = errors.New("tensor: not defined on the device")
	// ErrDevices is wrapped by the panic of an operation on tensors of several devices.
	ErrDevices = errors.New("tensor: expected all tensors to be on the same device")
	// ErrNested is wrapped where nested slices are not rectangular or hold a value that is not a
	// number, and where a tensor does not fit the type of nested slices that was asked for.
	ErrNested = errors.New("tensor: nested slices and a tensor do not match")
	// ErrState is wrapped by Generator.SetState for bytes that are not a result of State.
	ErrState = errors.New("tensor: not the state of a generator")
)

// misuse panics with an error that wraps kind: ErrMisuse, or an error that wraps it.
func misuse(kind error, format string, args ...any) {
	panic(fmt.Errorf("tensor: %s%.0w", fmt.Sprintf(format, args...), kind))
}
