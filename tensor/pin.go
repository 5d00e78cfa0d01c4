package tensor

import (
	"fmt"
	"sync/atomic"
)

// pinner is what RegisterPinner was given.
var pinner atomic.Pointer[func(b []byte) (func() error, error)]

// RegisterPinner says how pages of shared memory are locked so that a device copies to and from
// them by itself; a package that has devices does. lock is given all bytes of a block, once. What
// it returns, which may be nil, is called before the block is given back: others may have its pages
// then, or nobody.
func RegisterPinner(lock func(b []byte) (unlock func() error, err error)) { pinner.Store(&lock) }

// PinMemory moves a contiguous tensor to shared memory, as Share does, and has the pages of its
// block locked for devices until this process gives the block back: torch's pin_memory, in its
// place. The error wraps ErrDevice where this program has no device that could use them, and
// ErrForeign where the memory is not the domain's.
func (t *Tensor) PinMemory() error {
	lock := pinner.Load()
	if lock == nil {
		return fmt.Errorf("pin memory: %w: this program imports no package that has one", ErrDevice)
	}
	if dev := t.Device(); dev != nil {
		return fmt.Errorf("pin memory: the tensor is on %v", dev)
	}
	err := t.Share()
	if err == nil {
		err = t.store().pin(*lock)
	}
	if err != nil {
		return fmt.Errorf("pin memory: %w", err)
	}
	return nil
}

// pin locks the pages of a block, once. An open tensor keeps the block meanwhile.
func (s *storage) pin(lock func(b []byte) (func() error, error)) error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	m := s.mem.Load()
	l, ok := m.block()
	if !ok {
		return ErrForeign
	}
	if l.pinned {
		return nil
	}
	unlock, err := lock(m.bytes)
	l.pinned, l.unlock = err == nil, unlock
	return err
}
