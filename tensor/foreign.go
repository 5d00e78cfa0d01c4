package tensor

import (
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/foreign"
)

// Storage is the memory that tensors view, for packages that bring memory from elsewhere.
type Storage = storage

func init() {
	foreign.Provide(foreign.Tensors[*Tensor, *Storage]{Adopt: lend, MapFile: mapFile, ReadFileAt: readFileAt})
}

// A loan is a foreign.Loan that ends once.
type loan struct {
	foreign.Loan
	once sync.Once
}

func (l *loan) end() (err error) {
	l.once.Do(func() { err = l.Loan.End() })
	return err
}

// lend is Adopt of package foreign.
func lend(b []byte, l foreign.Loan) *Storage {
	s := new(storage)
	s.rent(&memory{bytes: b, lease: &loan{Loan: l}})
	return s
}

// View returns a tensor of the storage, to be closed by the caller. Strides and offset are in
// elements, and nil is row-major. The error wraps ErrLayout or ErrDType where the tensor is not in
// the storage, and ErrClosed where the storage has ended.
func (s *storage) View(dt DType, shape, strides []int, offset int) (*Tensor, error) {
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

// OnClose has f called, by whatever goroutine, when the last tensor that views the storage has been
// closed. If it is collected instead, f is not called. It reports false, and does nothing, where an
// earlier call has said what to do.
func (s *storage) OnClose(f func()) bool { return s.onClose.CompareAndSwap(nil, &f) }

// Bytes returns the memory as a whole. It is borrowed: the caller keeps a tensor of the storage
// open.
func (s *storage) Bytes() []byte { return s.mem.Load().bytes }

// Loan returns what Adopt or MoveTo was given, nil for the heap and for blocks of a domain.
func (s *storage) Loan() foreign.Loan {
	if l, ok := s.mem.Load().lease.(*loan); ok {
		return l.Loan
	}
	return nil
}

// MoveTo moves the bytes of a storage on the heap to b, as Share moves them into shared memory: all
// tensors follow, and slices from before do not. The error wraps ErrForeign where the storage is
// not on the heap; then l has not begun.
func (s *storage) MoveTo(b []byte, l foreign.Loan) error {
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
	s.rent(&memory{bytes: b, lease: &loan{Loan: l}})
	return nil
}

// Storage returns the storage that t views.
func (t *Tensor) Storage() *Storage { return t.store() }
