package tensor

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// pinner is what RegisterPinner was given.
var pinner atomic.Pointer[func(b []byte) error]

// RegisterPinner says how pages of shared memory are locked so that a device copies to and from them by itself; a package that has devices does. lock is
// given bytes of shared memory, by several goroutines and the same ones again; their addresses are never used for anything else, so nothing unlocks them.
func RegisterPinner(lock func(b []byte) error) { pinner.Store(&lock) }

// PinMemory moves a contiguous tensor to shared memory, as Share does, and has its pages locked for devices: torch's pin_memory, in its place. The error
// wraps ErrDevice where this program has no device that could use them.
func (t *Tensor) PinMemory() error {
	lock := pinner.Load()
	if lock == nil {
		return fmt.Errorf("pin memory: %w: this program imports no package that has one", ErrDevice)
	}
	if dev := t.Device(); dev != nil {
		return fmt.Errorf("pin memory: the tensor is on %v", dev)
	}
	if err := t.Share(); err != nil {
		return fmt.Errorf("pin memory: %w", err)
	}
	defer runtime.KeepAlive(t)
	return (*lock)(Bytes(t))
}
