package torch

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard runs f. PyTorch may truncate the file behind a tensor. If f touches memory that is gone, f
// ends at that access, and the error wraps ErrTruncated; without Guard the process would end. Guard
// does not guard goroutines that f starts.
func Guard(f func()) (err error) { return guard(regions.holds, f) }

// guard guards the addresses for which holds returns true, as Guard does.
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
