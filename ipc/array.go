package ipc

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An Array is a fixed-length array of numbers in shared memory. Any process of the domain may use
// it. Each element is read and written atomically, with or without the Mutex; an Array without use
// of its Mutex is Python's RawArray. The caller must hold the Mutex to read or change several
// elements as one operation:
//
//	if err := a.Lock(ctx); err != nil {
//		return err
//	}
//	defer a.Unlock()
//
// A negative index counts from the end, as in Python: -1 is the last element. All methods may be
// called from several goroutines. For bools and structs, see [Records]. The zero Array is closed.
type Array[T Number] struct{ Mutex }

// NewArray returns an array of n zeros. The caller must close it. It returns [ErrSize] if n is
// negative.
func NewArray[T Number](n int) (*Array[T], error) {
	o, err := newNumbers[T](arrayName[T](), n)
	if err != nil {
		return nil, err
	}
	return &Array[T]{mutexOf(o)}, nil
}

// newNumbers allocates an object with a mutex and n zero numbers of type T. It returns [ErrSize]
// if n is negative or too large. name is the name of the generic type on the wire.
func newNumbers[T Number](name string, n int) (*object, error) {
	return newCells(name, n, arena.SizeOf[T]())
}

// newCells allocates an object with a mutex and n zeroed elements of size bytes each. It returns
// [ErrSize] if n is negative or the elements exceed 2^48 bytes. The object's flag stores n.
func newCells(name string, n, size int) (*object, error) {
	if err := checkSize(name, n, 0, 1<<48/size); err != nil {
		return nil, err
	}
	o, err := newObject(name, arena.SyncOptions{Form: arena.FormMutex, Bytes: n * size})
	if err == nil {
		o.sync.SetFlag(uint64(n))
	}
	return o, err
}

// ArrayOf returns an array that is initialized with a copy of from. The caller must close it.
func ArrayOf[T Number](from []T) (*Array[T], error) {
	a, err := NewArray[T](len(from))
	if err != nil {
		return nil, err
	}
	return a, a.Write(0, from)
}

func arrayName[T Number]() string { return "Array[" + elemName[T]() + "]" }

// elemCount returns the number of elements, or 0 if o is closed.
func (o *object) elemCount() int {
	if o.beginOp() != nil {
		return 0
	}
	defer o.endOp()
	return int(o.sync.Flag())
}

// Len returns the number of elements, or 0 if a is closed.
func (a *Array[T]) Len() int { return a.obj.elemCount() }

// At returns element i, which is read atomically. A negative i counts from the end. It returns
// [ErrIndex] if i is out of range, or [ErrClosed] if a is closed.
func (a *Array[T]) At(i int) (v T, err error) {
	err = a.withElems(i, 1, func(n arena.Numbers[T]) { v = n.At(0) })
	return v, err
}

// Set atomically sets element i to v. A negative i counts from the end. It returns [ErrIndex] if
// i is out of range, or [ErrClosed] if a is closed.
func (a *Array[T]) Set(i int, v T) error {
	return a.withElems(i, 1, func(n arena.Numbers[T]) { n.Set(0, v) })
}

// Add atomically adds delta to element i and returns the sum. Concurrent additions by other
// processes are not lost. It returns [ErrIndex] if i is out of range.
func (a *Array[T]) Add(i int, delta T) (sum T, err error) {
	err = a.withElems(i, 1, func(n arena.Numbers[T]) { sum = n.Add(0, delta) })
	return sum, err
}

// CompareAndSwap atomically sets element i to v if it equals old, and reports whether it did. It
// returns [ErrIndex] if i is out of range.
func (a *Array[T]) CompareAndSwap(i int, old, v T) (swapped bool, err error) {
	err = a.withElems(i, 1, func(n arena.Numbers[T]) { swapped = n.CompareAndSwap(0, old, v) })
	return swapped, err
}

// Read copies the elements starting at index i into dst, until dst is full. Each element is read
// atomically, but the caller must hold the Mutex to read a consistent snapshot of several. A
// negative i counts from the end. It returns [ErrIndex] if there are fewer than len(dst)
// elements from i on.
func (a *Array[T]) Read(i int, dst []T) error {
	return a.withElems(i, len(dst), func(n arena.Numbers[T]) {
		for k := range dst {
			dst[k] = n.At(k)
		}
	})
}

// Write copies src to the elements starting at index i. Each element is written atomically, but
// the caller must hold the Mutex if others must not see only some of them. A negative i counts
// from the end. It returns [ErrIndex] if there are fewer than len(src) elements from i on; then
// it writes none.
func (a *Array[T]) Write(i int, src []T) error {
	return a.withElems(i, len(src), func(n arena.Numbers[T]) {
		for k, v := range src {
			n.Set(k, v)
		}
	})
}

// withElems calls f with the n elements starting at index i. A negative i counts from the end.
// It returns [ErrIndex] if the range is out of bounds, and [ErrClosed] if a is closed; then f is
// not called.
func (a *Array[T]) withElems(i, n int, f func(arena.Numbers[T])) error {
	return a.obj.withSpan(i, n, func(at int) { f(arena.NumbersIn[T](a.obj.sync.Data())[at : at+n]) })
}

// withSpan calls f with the non-negative index of element i, after checking that the object has
// at least n elements from there on. A negative i counts from the end. It returns [ErrIndex] if
// the range is out of bounds, and [ErrClosed] if o is closed; then f is not called. The object
// stays open until f returns.
func (o *object) withSpan(i, n int, f func(at int)) error {
	if err := o.beginOp(); err != nil {
		return err
	}
	defer o.endOp()
	have := int(o.sync.Flag())
	at := resolveIndex(i, have)
	if at < 0 || at > have || n > have-at {
		return fmt.Errorf("%w: %d elements at index %d, length %d", ErrIndex, n, i, have)
	}
	f(at)
	return nil
}

// resolveIndex resolves a Python-style index into n elements: a negative i counts from the end. The
// result may be out of range; the caller must check it.
func resolveIndex(i, n int) int {
	if i < 0 {
		return i + n
	}
	return i
}

// readNumbers decodes an object with elements of size bytes each. It returns [ErrType] if the
// encoded type name differs from name. The object's flag holds the number of elements; because
// the sender may be corrupt, readNumbers returns [ErrNotObject] if they do not fit into the
// object's memory.
func readNumbers(d *codec.Decoder, name string, size int) (*object, error) {
	o, err := readObject(d, name, arena.FormMutex)
	if err != nil {
		return nil, err
	}
	if n, room := o.sync.Flag(), len(o.sync.Data()); n > uint64(room)/uint64(size) {
		return nil, fmt.Errorf("%w: %d elements do not fit in %d bytes", ErrNotObject, n, room)
	}
	return o, nil
}

// unmarshalWire decodes an Array. It returns [ErrType] if the element type differs from T.
func (a *Array[T]) unmarshalWire(d *codec.Decoder) (err error) {
	a.obj, err = readNumbers(d, arrayName[T](), arena.SizeOf[T]())
	return err
}
