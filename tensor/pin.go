package tensor

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/device"
)

// PinMemory moves the storage of t to shared memory, as [Tensor.Share] does, and locks its pages
// for copies to devices, like pin_memory in PyTorch but in place. The pages stay locked until
// this process releases the block. The error wraps [ErrDevice] if the program has no device that
// uses pinned memory, and [ErrForeign] if the memory belongs to another program.
func (t *Tensor) PinMemory() error {
	lock := device.Locker()
	if lock == nil {
		return fmt.Errorf("pin memory: %w: no device package with pinned memory is imported", ErrDevice)
	}
	if dev := t.Device(); dev != nil {
		return fmt.Errorf("pin memory: tensor is on %v, want the host", dev)
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

// pin locks the pages of s's block with lock, once; lock returns the function that unlocks them.
// The caller must keep a tensor of s open meanwhile. The error is ErrForeign if the memory is not
// a block.
func (s *Storage) pin(lock func(b []byte) (func() error, error)) error {
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
