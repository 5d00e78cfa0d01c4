package tensor

import (
	"fmt"
	"sync"
)

// Storage is the memory that tensors view, for packages that bring memory from elsewhere.
type Storage = storage

// A Loan is memory from elsewhere that tensors view. End is called once, from any goroutine, when
// the last tensor that views it is closed or collected.
type Loan interface{ End() error }

// loan is a Loan that ends once.
type loan struct {
	Loan
	once sync.Once
}

func (l *loan) end() (err error) {
	l.once.Do(func() { err = l.Loan.End() })
	return err
}

// Adopt makes a storage of b, which must begin at a multiple of 16 bytes and not be used in other
// ways after l has ended. A storage of which no tensor is made ends when it is collected.
func Adopt(b []byte, l Loan) *Storage {
	s := new(storage)
	s.rent(&memory{b, &loan{Loan: l}})
	return s
}

// View returns a tensor of the storage, to be closed by the caller. The error wraps ErrLayout or
// ErrDType where the tensor is not in the storage, and ErrClosed where the storage has ended.
func (s *storage) View(dt DType, shape, strides []int, offset int) (*Tensor, error) {
	t, err := layOut(dt, shape, strides, offset, s.mem.Load().size())
	if err != nil {
		return nil, fmt.Errorf("view storage: %w", err)
	}
	if !s.retainOpen() {
		return nil, ErrClosed
	}
	t.hold(s)
	return t, nil
}

// Contiguous returns the tensor of a storage from its first byte on; see View for the error.
func Contiguous(s *Storage, dt DType, shape ...int) (*Tensor, error) {
	if _, err := dt.SizeOf(shape...); err != nil {
		return nil, fmt.Errorf("view storage: %w", err)
	}
	return s.View(dt, shape, rowMajor(shape), 0)
}

// OnClose has f called, by whatever goroutine, when the last tensor that views the storage has been
// closed. If it is collected instead, f is not called. It reports false, and does nothing, where an
// earlier call has said what to do.
func (s *storage) OnClose(f func()) bool { return s.onClose.CompareAndSwap(nil, &f) }

// Bytes returns the memory as a whole. It is borrowed: the caller keeps a tensor of the storage
// open.
func (s *storage) Bytes() []byte { return s.mem.Load().bytes }

// Loan returns what Adopt or MoveTo was given, nil for the heap and for blocks of a domain.
func (s *storage) Loan() Loan {
	if l, ok := s.mem.Load().lease.(*loan); ok {
		return l.Loan
	}
	return nil
}

// MoveTo moves the bytes of a storage on the heap to b, as Share moves them into shared memory: all
// tensors follow, and slices from before do not. The error wraps ErrForeign where the storage is
// not on the heap; then l has not begun.
func (s *storage) MoveTo(b []byte, l Loan) error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	old := s.mem.Load()
	if old.lease != nil {
		return ErrForeign
	}
	if len(b) != len(old.bytes) {
		misuse("MoveTo %d bytes of a storage of %d", len(b), len(old.bytes))
	}
	copy(b, old.bytes)
	s.rent(&memory{b, &loan{Loan: l}})
	return nil
}

// Storage returns what t views.
func (t *Tensor) Storage() *Storage { return t.store() }
