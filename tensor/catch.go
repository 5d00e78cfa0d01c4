package tensor

import (
	"runtime"
	"runtime/debug"
)

// Catch calls f, and returns the error of an operation in f that panicked by a fault of the world.
// Such errors are those of a device, such as no memory for a result, ErrUnsupported, ErrDevices,
// and ErrFile for a mapped file that was cut short. Catch returns nil if f does not panic. It does
// not catch panics of mistakes, of the runtime, or of other goroutines that f starts.
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
