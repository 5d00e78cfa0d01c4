package tensor

import (
	"runtime"
	"runtime/debug"
)

// Catch calls f, and returns the error with which an operation in it panicked, because of what the
// world did and not by a mistake: what a device said no to, such as memory for a result,
// ErrUnsupported, ErrDevices, and ErrFile of a file that was cut short under a tensor. It
// returns nil where none did. Only what f does in its own goroutine is caught. Panics of mistakes
// and of the runtime go on.
//
//	if err := tensor.Catch(func() { y = net.Forward(x) }); err != nil {
//		// with a smaller batch
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
