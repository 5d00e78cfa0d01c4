package torch

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard runs f. PyTorch may truncate the file behind a tensor. Where f touches memory that is gone,
// f ends there, and the error wraps ErrTruncated; without Guard the process would end. Guard does
// not guard goroutines that f starts.
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
