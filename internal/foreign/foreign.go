package foreign

import (
	"io"
	"os"
)

// Tensors are its functions. P is *tensor.Tensor, and S is *tensor.Storage.
type Tensors[P, S any] struct {
	// Adopt makes a storage of b, which must begin at a multiple of 16 bytes and not be used in
	// other ways after l has ended. A storage of which no tensor is made ends when it is collected.
	Adopt func(b []byte, l Loan) S

	// MapFile maps an open file, for packages that know where tensors are in it. The file becomes
	// the Map's, which the caller closes; on an error it stays the caller's.
	//
	// The file is only read: what is written stays in the memory of the tensors. It may be removed
	// or replaced; one that is cut short is the error that tensor.FromFile speaks of.
	MapFile func(f *os.File) (Map[P], error)

	// ReadFileAt fills t, which is contiguous and on the host, with the bytes at an offset of a
	// file, as a copy that needs no mapping.
	ReadFileAt func(t P, f *os.File, at int64) error

	// ReadFrom returns a tensor of Uint8 with the next n bytes of r. Its memory grows with what
	// comes: a header that claims more than follows it takes no memory. The error is that of
	// io.ReadFull.
	ReadFrom func(r io.Reader, n int) (P, error)

	// LoanOf returns what Adopt or MoveTo was given, nil for the heap and for blocks of a domain.
	LoanOf func(s S) Loan

	// MoveTo moves the bytes of a storage on the heap to b, as Tensor.Share moves them to shared
	// memory: all tensors follow, and slices from before do not. The error wraps tensor.ErrForeign
	// where the storage is not on the heap; then l has not begun.
	MoveTo func(s S, b []byte, l Loan) error

	// OnClose has f called, by whatever goroutine, when the last tensor that views the storage has
	// been closed. If the storage is collected instead, f is not called. OnClose reports false, and
	// does nothing, where an earlier call has said what to do.
	OnClose func(s S, f func()) bool

	// Forget takes the pages of t, contiguous elements of a mapped file, out of this process. They
	// come from the file again when they are touched, without what was written to them. It does
	// nothing for other tensors.
	Forget func(t P)

	// Check returns an error that wraps tensor.ErrClosed for a tensor that is nil or closed, for
	// packages that take tensors from users and return errors.
	Check func(t P) error

	// Release closes a tensor that nobody else has or will use, and uses the object again. It
	// cannot fail for a tensor of the heap.
	Release func(t P)

	// Look makes v a view of t, as LookAs does, with sizes, strides and an offset.
	Look func(t, v P, dims int, sizes, strides [4]int, offset int)

	// LookAs makes v the view of t with another shape, the first dims of sizes, as t.View does
	// without making a tensor. v is closed, or new, and nobody else has it. It reports false where
	// the strides do not allow a view. The sizes are no slice, which would be on the heap.
	LookAs func(t, v P, dims int, sizes [4]int) bool
}

// A Loan is memory from elsewhere that tensors view. End is called once, from any goroutine, when
// the last tensor that views it is closed or collected.
type Loan interface{ End() error }

// A Map is a mapped file in which tensors are found, each with a storage of its own. The mapping
// lasts until the Map and all of them are closed or collected.
type Map[P any] interface {
	// Storage returns a tensor of Uint8 whose storage are the n bytes at an offset, which should be
	// a multiple of 8, or of 16 for Complex128. The caller views its Storage and closes it. The
	// error wraps tensor.ErrLayout where the file has no such bytes.
	Storage(at, n int64) (P, error)
	// Close closes the mapping when the tensors in it are closed.
	Close() error
}

var tensors any

// Provide gives them to OfTensors. Package tensor does, when it is initialized.
func Provide[P, S any](t Tensors[P, S]) { tensors = t }

// OfTensors returns what package tensor has provided; the caller imports that.
func OfTensors[P, S any]() Tensors[P, S] { return tensors.(Tensors[P, S]) }
