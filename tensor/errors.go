package tensor

import (
	"errors"
	"fmt"
	"os"
)

// Faults that are not mistakes of the program. A mistake, such as shapes that do not fit, is a
// panic.
var (
	// ErrClosed is wrapped where a closed tensor, or none, is shared, sent, saved or loaded into.
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

// misuse panics with a sentence about a programmer's mistake.
func misuse(format string, args ...any) { panic("tensor: " + fmt.Sprintf(format, args...)) }
