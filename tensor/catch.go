package tensor

import (
	"runtime"
	"runtime/debug"
)

// Catch calls f and returns the error that f panicked with, or nil. It should be used where shapes,
// indices or dtypes come from a request, a file or a message, and where memory may run out.
//
// Operations of this package and of packages autograd, nn and optim panic with these errors:
//
//   - Incorrect calls wrap [ErrMisuse] ([ErrShape], [ErrIndex], [ErrArgument], [ErrOperand]),
//     [ErrClosed] for a closed tensor, or [ErrDevices].
//   - A result that exceeds the available memory wraps [ErrMemory].
//   - Devices have errors of their own, for example if they are out of memory, and
//     [ErrUnsupported].
//   - The error wraps [ErrFile] if a mapped file has been truncated.
//
// Catch does not recover panics with values that are not errors, panics of package runtime, such as
// an index out of range in f itself, or panics of other goroutines. After an error, tensors that f
// was changing may be partly changed; there are no other effects.
//
//	if err := tensor.Catch(func() { y = net.Forward(x) }); err != nil {
//		return fmt.Errorf("request %s: %w", id, err)
//	}
func Catch(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			if err = files.faultError(p.Addr()); err == nil {
				panic(p)
			}
		case runtime.Error:
			panic(p)
		case error:
			err = p
		default:
			panic(p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	f()
	return nil
}
