//go:build !linux || (!amd64 && !arm64)

package sys

import (
	"errors"
	"fmt"
)

// Faults needs Linux on amd64 or arm64.
type Faults struct{}

// WatchFaults needs Linux on amd64 or arm64.
func WatchFaults(mem []byte) (*Faults, error) {
	return nil, fmt.Errorf("sys: explaining faults needs Linux on amd64 or arm64: %w", errors.ErrUnsupported)
}

// Explain does nothing.
func (f *Faults) Explain(off, n int, text string) {}
