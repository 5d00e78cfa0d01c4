package tensor

import (
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/foreign"
)

func init() {
	foreign.Provide(foreign.Tensors[*Tensor, *Storage]{
		Adopt: lend, MapFile: mapFile, ReadFileAt: readFileAt,
		LoanOf: (*Storage).loan, MoveTo: (*Storage).moveTo, OnClose: (*Storage).whenClosed,
	})
}

// A loan is a foreign.Loan that ends once.
type loan struct {
	of   foreign.Loan
	once sync.Once
}

func (l *loan) end() (err error) {
	l.once.Do(func() { err = l.of.End() })
	return err
}

// lend is Adopt of package foreign.
func lend(b []byte, l foreign.Loan) *Storage {
	s := new(Storage)
	s.rent(&memory{bytes: b, lease: &loan{of: l}})
	return s
}

// View returns a tensor of the storage, to be closed by the caller. Strides and offset are in
// elements, and nil is row-major. The error wraps ErrLayout or ErrDType where the tensor is not in
// the storage, and ErrClosed where the storage has ended.
func (s *Storage) View(dt DType, shape, strides []int, offset int) (*Tensor, error) {
	if strides == nil {
		if _, err := dt.SizeOf(shape...); err != nil {
			return nil, fmt.Errorf("view storage: %w", err)
		}
		strides = rowMajor(shape)
	}
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

// whenClosed is OnClose of package foreign.
func (s *Storage) whenClosed(f func()) bool { return s.onClose.CompareAndSwap(nil, &f) }

// Bytes returns the memory as a whole, nil on a device. The slice is borrowed: the caller keeps a
// tensor of the storage open.
func (s *Storage) Bytes() []byte { return s.mem.Load().bytes }

// loan is LoanOf of package foreign.
func (s *Storage) loan() foreign.Loan {
	if l, ok := s.mem.Load().lease.(*loan); ok {
		return l.of
	}
	return nil
}

// moveTo is MoveTo of package foreign.
func (s *Storage) moveTo(b []byte, l foreign.Loan) error {
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
	s.rent(&memory{bytes: b, lease: &loan{of: l}})
	return nil
}

// Storage returns the storage that t views.
func (t *Tensor) Storage() *Storage { return t.store() }
