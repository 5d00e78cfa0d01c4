//go:build !linux || (!amd64 && !arm64)

package sys

import (
	"errors"
	"fmt"
)

// Faults explains accesses to memory that must not be accessed any more. It needs Linux on
// amd64 or arm64: [WatchFaults] returns an error on other systems.
type Faults struct{}

// WatchFaults returns an error that wraps [errors.ErrUnsupported]: explaining faults needs
// Linux on amd64 or arm64.
func WatchFaults(mem []byte) (*Faults, error) {
	return nil, fmt.Errorf("sys: explaining faults needs Linux on amd64 or arm64: %w", errors.ErrUnsupported)
}

// Explain does nothing.
func (f *Faults) Explain(off, n int, text string) {}
