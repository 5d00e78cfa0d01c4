package tensor

import (
	"fmt"
	"io"
	"sync"

	"github.com/shoal-mp/shoal/internal/foreign"
)

func init() {
	foreign.Provide(foreign.Tensors[*Tensor, *Storage]{
		Adopt: adoptLoan, MapFile: mapFile, ReadFileAt: readFileAt, ReadFrom: readFrom,
		LoanOf: (*Storage).loanOf, MoveTo: (*Storage).moveTo, OnClose: (*Storage).setOnClose,
		Forget: dropPages, Check: check, Release: (*Tensor).release,
		Look: func(t, v *Tensor, dims int, sizes, strides [4]int, offset int) {
			t.makeView(v, sizes[:dims], strides[:dims], offset)
		},
		LookAs: func(t, v *Tensor, dims int, sizes [4]int) bool { return t.makeViewAs(v, sizes[:dims]) },
	})
}

// check implements Check of package foreign: it returns an error that wraps ErrClosed if t is nil
// or closed.
func check(t *Tensor) error {
	switch {
	case t == nil:
		return fmt.Errorf("nil tensor: %w", ErrClosed)
	case t.open() == nil:
		return ErrClosed
	}
	return nil
}

// A loan is the holder of memory that another package provides. It ends the foreign.Loan only
// once.
type loan struct {
	of   foreign.Loan
	once sync.Once
}

func (l *loan) releaseMemory() (err error) {
	l.once.Do(func() { err = l.of.End() })
	return err
}

// adoptLoan implements Adopt of package foreign: it returns a storage over b, without views. l
// ends when the storage is closed or collected.
func adoptLoan(b []byte, l foreign.Loan) *Storage {
	s := new(Storage)
	s.setForeign(&memory{bytes: b, lease: &loan{of: l}})
	return s
}

// readFrom allocates at most firstPart bytes at first, and grows the buffer by a factor of
// partGrows each time that it is full. Growing copies the bytes read so far; the last copy moves an
// eighth of all bytes.
const (
	firstPart = 1 << 20
	partGrows = 8
)

// readFrom implements ReadFrom of package foreign: it returns a Uint8 tensor with the next n
// bytes of r, with the errors of io.ReadFull. The caller must close the tensor.
func readFrom(r io.Reader, n int) (*Tensor, error) {
	part := n
	for part > firstPart {
		part = (part + partGrows - 1) / partGrows
	}
	t := Empty(Uint8, part)
	for have := 0; ; {
		if _, err := io.ReadFull(r, t.contiguousBytes()[have:]); err != nil {
			t.Close()
			return nil, err
		}
		if have = t.Nbytes(); have == n {
			return t, nil
		}
		more := Empty(Uint8, min(n, have*partGrows))
		copy(more.contiguousBytes(), t.contiguousBytes())
		t.Close()
		t = more
	}
}

// View returns a tensor over the storage. The caller must close it. strides and offset are in
// elements; nil strides mean row-major. The error wraps [ErrLayout] or [ErrDType] if the tensor
// does not fit the storage. View returns [ErrClosed] if the storage has been released.
func (s *Storage) View(dt DType, shape, strides []int, offset int) (*Tensor, error) {
	if strides == nil {
		if _, err := dt.SizeOf(shape...); err != nil {
			return nil, fmt.Errorf("view storage: %w", err)
		}
		strides = rowMajor(shape)
	}
	t, err := newUnbacked(dt, shape, strides, offset, s.mem.Load().size())
	if err != nil {
		return nil, fmt.Errorf("view storage: %w", err)
	}
	if !s.retainOpen() {
		return nil, ErrClosed
	}
	t.setStorage(s)
	t.describeBlock()
	return t, nil
}

// setOnClose implements OnClose of package foreign: f is called when the last tensor of s is
// closed. setOnClose returns false and does nothing if there already is a function.
func (s *Storage) setOnClose(f func()) bool { return s.onClose.CompareAndSwap(nil, &f) }

// Bytes returns the whole memory, or nil on a device. The slice is borrowed: the caller must keep a
// tensor of the storage open.
func (s *Storage) Bytes() []byte { return s.mem.Load().bytes }

// loanOf implements LoanOf of package foreign: it returns the loan that provides the memory of s,
// or nil if there is none.
func (s *Storage) loanOf() foreign.Loan {
	if l, ok := s.mem.Load().lease.(*loan); ok {
		return l.of
	}
	return nil
}

// moveTo implements MoveTo of package foreign: it copies the elements of s to b, which becomes
// the memory of s. l ends when s is closed or collected. moveTo returns ErrForeign if s is not on
// the heap, and panics with ErrShape if b has another length.
func (s *Storage) moveTo(b []byte, l foreign.Loan) error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	old := s.mem.Load()
	if old.lease != nil {
		return ErrForeign
	}
	if len(b) != len(old.bytes) {
		misuse(ErrShape, "MoveTo: got %d bytes, want %d as in the storage", len(b), len(old.bytes))
	}
	copy(b, old.bytes)
	s.setForeign(&memory{bytes: b, lease: &loan{of: l}})
	return nil
}

// Storage returns t's storage. It panics if t is closed.
func (t *Tensor) Storage() *Storage { return t.store() }
