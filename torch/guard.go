package torch

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Guard calls f and converts a memory fault into an error. PyTorch may truncate the file behind a
// tensor, and an access to the missing part would end the program. Under Guard, f is aborted at
// such an access and the error wraps [ErrTruncated]. Other panics are passed on. Goroutines started
// by f are not guarded.
func Guard(f func()) (err error) { return guardFaults(regions.containsAddr, f) }

// guardFaults is [Guard] for faults at the addresses that holds reports. It passes on other
// faults as panics.
func guardFaults(holds func(addr uintptr) bool, f func()) (err error) {
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
