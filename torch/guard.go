package torch

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard runs f. Should f touch memory that is no longer there, since PyTorch has truncated the file
// behind a tensor, it ends there and the error wraps ErrTruncated; without Guard the process would
// end. Goroutines that f starts are not guarded.
func Guard(f func()) (err error) { return guard(regions.holds, f) }

// guard is Guard for the memory that holds says.
func guard(holds func(addr uintptr) bool, f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interface {
			runtime.Error
			Addr() uintptr
		}:
			if !holds(p.Addr()) {
				panic(p)
			}
			err = fmt.Errorf("%w: %w", ErrTruncated, p)
		default:
			panic(p)
		}
	}()
	f()
	return nil
}
