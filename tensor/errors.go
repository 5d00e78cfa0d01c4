package tensor

import (
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/sentinel"
)

// Errors that operations and functions of this package return or panic with. [Catch] returns the
// error of a panicking operation.
var (
	// ErrMisuse is wrapped by all panics caused by incorrect calls, in this package and in packages
	// autograd, nn and optim. ErrShape, ErrIndex, ErrArgument and ErrOperand wrap it.
	ErrMisuse = errors.New("tensor: misuse")
	// ErrShape is wrapped if shapes or strides are incompatible with each other or with the
	// operation.
	ErrShape = sentinel.New("tensor: incompatible shapes", ErrMisuse)
	// ErrIndex is wrapped if an index or a dimension is out of range, or a dimension is listed
	// twice.
	ErrIndex = sentinel.New("tensor: index out of range", ErrMisuse)
	// ErrArgument is wrapped if a number is out of range for the operation, such as a negative
	// standard deviation.
	ErrArgument = sentinel.New("tensor: argument out of range", ErrMisuse)
	// ErrOperand is wrapped if an operation is not defined for the dtype of a tensor.
	ErrOperand = sentinel.New("tensor: not defined for the dtype", ErrMisuse)
	// ErrMemory is wrapped if a tensor or nested slices would exceed the memory of the machine or
	// of this process's control group. A view may have more elements than its storage, so a small
	// message can describe such a tensor.
	ErrMemory = errors.New("tensor: not enough memory")
	// ErrClosed is wrapped if a nil or closed tensor is used, shared, sent, saved or loaded into.
	ErrClosed = sentinel.New("tensor: closed", os.ErrClosed)
	// ErrDType is wrapped if a name or a number is not a dtype.
	ErrDType = errors.New("tensor: unknown dtype")
	// ErrLayout is wrapped if the shape, strides and offset of a received tensor exceed its memory.
	ErrLayout = errors.New("tensor: layout exceeds its memory")
	// ErrAlign is wrapped if the offset of a tensor in bytes is not a multiple of the element size.
	ErrAlign = errors.New("tensor: offset not aligned to the element size")
	// ErrFile is wrapped if a file is too short for a tensor, is truncated later, is not a regular
	// file, or has been replaced. It is wrapped in an *encoding.FileError.
	ErrFile = errors.New("tensor: file does not fit the tensor")
	// ErrDomain is wrapped if a tensor is sent but its memory is not in the default domain of this
	// process.
	ErrDomain = errors.New("tensor: shared in another domain")
	// ErrForeign is wrapped if the memory of another program, such as a PyTorch tensor, would have
	// to move. The caller should send a clone.
	ErrForeign = errors.New("tensor: memory belongs to another program")
	// ErrDevice is wrapped if a received tensor is on a device that this program does not know.
	ErrDevice = errors.New("tensor: unknown device")
	// ErrUnsupported is wrapped if a device has no kernel for an operation or a dtype. The host
	// supports all of them: copy the tensor with CPU.
	ErrUnsupported = errors.New("tensor: not defined on the device")
	// ErrDevices is wrapped by the panic of an operation on tensors of several devices.
	ErrDevices = errors.New("tensor: expected all tensors to be on the same device")
	// ErrNested is wrapped if nested slices are not rectangular or contain a value that is not a
	// number, or if a tensor does not fit the requested type of nested slices.
	ErrNested = errors.New("tensor: nested slices do not match the tensor")
	// ErrState is wrapped by Generator.SetState if the bytes were not returned by State.
	ErrState = errors.New("tensor: invalid generator state")
)

// misuse panics with an error that wraps kind, which must be ErrMisuse or wrap it.
func misuse(kind error, format string, args ...any) {
	panic(sentinel.New("tensor: "+fmt.Sprintf(format, args...), kind))
}
