//go:build !linux || (!amd64 && !arm64)

package dl

import (
	"errors"
	"fmt"
)

// A Library is a loaded shared library. It is supported only on Linux with amd64 or arm64.
type Library struct{}

// Open returns an error that wraps [ErrNotLoaded] and [errors.ErrUnsupported].
func Open(names ...string) (*Library, error) {
	return nil, fmt.Errorf("%w: %q: %w", ErrNotLoaded, names, errors.ErrUnsupported)
}

// Name is never called.
func (l *Library) Name() string { return "" }

// Symbol is never called.
func (l *Library) Symbol(name string) (uintptr, error) { return 0, ErrNoSymbol }

// Call is never called.
func Call(fn uintptr, args ...uintptr) uintptr { return 0 }

// Callback is never called.
func Callback(f func(p uintptr)) uintptr { return 0 }

// Guard runs f.
func Guard(f func() error) error { return f() }
