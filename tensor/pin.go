package tensor

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/device"
)

// PinMemory moves a contiguous tensor to shared memory, as Share does, and has the pages of its
// block locked for devices until this process gives the block back: torch's pin_memory, in its
// place. The error wraps ErrDevice where this program has no device that could use them, and
// ErrForeign where the memory is not the domain's.
func (t *Tensor) PinMemory() error {
	lock := device.Locker()
	if lock == nil {
		return fmt.Errorf("pin memory: %w: this program imports no package that has one", ErrDevice)
	}
	if dev := t.Device(); dev != nil {
		return fmt.Errorf("pin memory: the tensor is on %v", dev)
	}
	err := t.Share()
	if err == nil {
		err = t.store().pin(lock)
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
