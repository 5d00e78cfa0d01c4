package tensor

import (
	"runtime"
	"runtime/debug"
)

// Catch calls f, and returns the error that f panicked with, or nil. Use it where shapes, indices
// or dtypes come from a request, a file or a message, and where memory may run out.
//
// Operations of this package and of packages autograd, nn and optim panic with errors:
//
//   - Mistakes in a call wrap [ErrMisuse] ([ErrShape], [ErrIndex], [ErrArgument], [ErrOperand]), or
//     [ErrClosed] for a closed tensor, or [ErrDevices].
//   - A result that is larger than memory is [ErrMemory].
//   - A device's errors, such as no memory for a result, and [ErrUnsupported].
//   - [ErrFile] for a mapped file that was cut short.
//
// Catch does not catch panics of other values than errors, those of package runtime, such as an
// index out of range in f itself, or those of other goroutines that f starts. After an error the
// tensors that f was changing may have some new elements; no other state is lost.
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
			if err = files.fault(p.Addr()); err == nil {
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
