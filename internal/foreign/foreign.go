package foreign

import (
	"io"
	"os"
)

// Tensors contains the functions provided by package tensor. P is *tensor.Tensor, and S is
// *tensor.Storage.
type Tensors[P, S any] struct {
	// Adopt returns a storage that uses the memory b. b must be aligned to 16 bytes, and must
	// remain valid until l.End is called. If no tensor is made from the storage, the loan ends when
	// the storage is garbage collected.
	Adopt func(b []byte, l Loan) S

	// MapFile maps an open file for packages that know the positions of tensors in it. The Map
	// takes ownership of the file, and the caller must close the Map. If MapFile returns an error,
	// the caller still owns the file.
	//
	// The mapping is private: writes to the tensors do not change the file. The file may be removed
	// or replaced while it is mapped. If it is truncated, the error is as described at
	// tensor.FromFile.
	MapFile func(f *os.File) (Map[P], error)

	// ReadFileAt fills t with the bytes at offset at of a file, without mapping it. t must be
	// contiguous and in host memory.
	ReadFileAt func(t P, f *os.File, at int64) error

	// ReadFrom returns a Uint8 tensor with the next n bytes of r. Memory is allocated as bytes
	// arrive, so that a header with a wrong length cannot exhaust it. The errors are the same as
	// for [io.ReadFull].
	ReadFrom func(r io.Reader, n int) (P, error)

	// LoanOf returns the Loan passed to Adopt or MoveTo. It is nil if the storage is on the heap or
	// a block of a domain.
	LoanOf func(s S) Loan

	// MoveTo moves the bytes of a storage from the heap to b, as Tensor.Share does to shared
	// memory: all its tensors use the new memory, but slices obtained before do not. The error
	// wraps tensor.ErrForeign if the storage is not on the heap; then the loan l has not begun, and
	// End is not called.
	MoveTo func(s S, b []byte, l Loan) error

	// OnClose registers f to be called, on any goroutine, when the last tensor that views the
	// storage is closed. f is not called if the storage is garbage collected instead. OnClose
	// returns false, and does nothing, if a function was registered before.
	OnClose func(s S, f func()) bool

	// Forget drops the pages of t from this process's memory. t should consist of contiguous
	// elements of a mapped file; other tensors are unchanged. The next access reads the pages from
	// the file again, so data written to them is lost.
	Forget func(t P)

	// Check returns an error that wraps tensor.ErrClosed if the tensor is nil or closed.
	Check func(t P) error

	// Release closes a tensor and recycles the object. The caller must have the only reference to
	// it and must not use it afterwards. It cannot fail for a tensor on the heap.
	Release func(t P)

	// Look makes v a view of t like LookAs, with the given sizes, strides and offset.
	Look func(t, v P, dims int, sizes, strides [4]int, offset int)

	// LookAs makes v a view of t with another shape, the first dims elements of sizes, as t.View
	// does, but without allocating a tensor. v must be closed or new, and the caller must have the
	// only reference to it. LookAs returns false if the strides of t do not allow a view. sizes is
	// an array because a slice would be allocated on the heap.
	LookAs func(t, v P, dims int, sizes [4]int) bool
}

// A Loan is memory from another source that tensors view. End is called once, on any goroutine,
// after the last tensor that views it is closed or garbage collected.
type Loan interface{ End() error }

// A Map is a mapped file that contains tensors, each with its own storage. The mapping lasts until
// the Map and all its tensors are closed or garbage collected.
type Map[P any] interface {
	// Storage returns a Uint8 tensor with a storage of the n bytes at offset at. The offset should
	// be a multiple of 8, or of 16 for Complex128. The caller must close the tensor, and may make
	// other views of its Storage. The error wraps tensor.ErrLayout if the range is outside the
	// file.
	Storage(at, n int64) (P, error)
	// Close closes the Map. The mapping is removed when all tensors in it are closed too.
	Close() error
}

var tensors any

// Provide sets the result of [OfTensors]. Package tensor calls it during initialization.
func Provide[P, S any](t Tensors[P, S]) { tensors = t }

// OfTensors returns the functions provided by package tensor. The caller must import package
// tensor; otherwise OfTensors panics.
func OfTensors[P, S any]() Tensors[P, S] { return tensors.(Tensors[P, S]) }
