package ipc

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// An Array is a fixed number of numbers in shared memory, for any processes of the domain. Each
// number is read and changed as a whole, with and without the Mutex; an Array whose Mutex is not
// used is Python's RawArray. Hold the Mutex to read or change several numbers at once:
//
//	if err := a.Lock(ctx); err != nil {
//		return err
//	}
//	defer a.Unlock()
//
// An index below 0 counts from the end, as in Python: -1 is the last element. Its methods may be
// called by several goroutines. Bools and structs are [Records]. The zero Array is closed.
type Array[T Number] struct{ Mutex }

// NewArray makes an array of n zeroes, ErrSize if n is below 0. The caller closes it.
func NewArray[T Number](n int) (*Array[T], error) {
	o, err := newNumbers[T](arrayName[T](), n)
	if err != nil {
		return nil, err
	}
	return &Array[T]{mutexOf(o)}, nil
}

// newNumbers makes an object of a lock and n numbers.
func newNumbers[T Number](name string, n int) (*object, error) {
	return newCells(name, n, arena.SizeOf[T]())
}

// newCells makes an object of a lock and n cells of so many bytes. How many they are is its flag.
func newCells(name string, n, size int) (*object, error) {
	if err := sized(name, n, 0, 1<<48/size); err != nil {
		return nil, err
	}
	o, err := newObject(name, arena.SyncOptions{Form: arena.FormMutex, Bytes: n * size})
	if err == nil {
		o.sync.SetFlag(uint64(n))
	}
	return o, err
}

// ArrayOf makes an array of the numbers in from. The caller closes it.
func ArrayOf[T Number](from []T) (*Array[T], error) {
	a, err := NewArray[T](len(from))
	if err != nil {
		return nil, err
	}
	return a, a.Write(0, from)
}

func arrayName[T Number]() string { return "Array[" + elemName[T]() + "]" }

// count is how many cells there are, 0 if o is closed.
func (o *object) count() int {
	if o.enter() != nil {
		return 0
	}
	defer o.leave()
	return int(o.sync.Flag())
}

// Len returns the number of elements, 0 if a is closed.
func (a *Array[T]) Len() int { return a.obj.count() }

// At returns element i, ErrIndex if there is none.
func (a *Array[T]) At(i int) (v T, err error) {
	err = a.with(i, 1, func(n arena.Numbers[T]) { v = n.At(0) })
	return v, err
}

// Set sets element i, ErrIndex if there is none.
func (a *Array[T]) Set(i int, v T) error {
	return a.with(i, 1, func(n arena.Numbers[T]) { n.Set(0, v) })
}

// Add adds delta to element i and returns the sum. No addition is lost, although other processes
// add at the same time.
func (a *Array[T]) Add(i int, delta T) (sum T, err error) {
	err = a.with(i, 1, func(n arena.Numbers[T]) { sum = n.Add(0, delta) })
	return sum, err
}

// CompareAndSwap sets element i to v if it equals old, and reports whether it did.
func (a *Array[T]) CompareAndSwap(i int, old, v T) (swapped bool, err error) {
	err = a.with(i, 1, func(n arena.Numbers[T]) { swapped = n.CompareAndSwap(0, old, v) })
	return swapped, err
}

// Read reads the elements from i on into all of dst. Each element is whole; hold the Mutex to read
// all of them as they are at one moment. The error is ErrIndex if there are fewer.
func (a *Array[T]) Read(i int, dst []T) error {
	return a.with(i, len(dst), func(n arena.Numbers[T]) {
		for k := range dst {
			dst[k] = n.At(k)
		}
	})
}

// Write writes src to the elements from i on. The error is ErrIndex if there are fewer.
func (a *Array[T]) Write(i int, src []T) error {
	return a.with(i, len(src), func(n arena.Numbers[T]) {
		for k, v := range src {
			n.Set(k, v)
		}
	})
}

// with calls f with the n elements from i on.
func (a *Array[T]) with(i, n int, f func(arena.Numbers[T])) error {
	return a.obj.span(i, n, func(at int) { f(arena.NumbersIn[T](a.obj.sync.Data())[at : at+n]) })
}

// span calls f with the place of element i, if there are n from there on. Below 0, i counts from
// the end.
func (o *object) span(i, n int, f func(at int)) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	have := int(o.sync.Flag())
	at := fromEnd(i, have)
	if at < 0 || at > have || n > have-at {
		return fmt.Errorf("%w: %d elements from %d of %d", ErrIndex, n, i, have)
	}
	f(at)
	return nil
}

// fromEnd returns the index that i stands for among n elements, as in Python: -1 is the last one.
func fromEnd(i, n int) int {
	if i < 0 {
		return i + n
	}
	return i
}

// readNumbers reads an object of so many numbers as its flag says.
func readNumbers(d *codec.Decoder, name string, size int) (*object, error) {
	o, err := readObject(d, name, arena.FormMutex)
	if err != nil {
		return nil, err
	}
	if n, room := o.sync.Flag(), len(o.sync.Data()); n > uint64(room)/uint64(size) {
		return nil, fmt.Errorf("%w: %d elements in %d bytes", ErrNotObject, n, room)
	}
	return o, nil
}

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if its elements have
// another type.
func (a *Array[T]) unmarshalWire(d *codec.Decoder) (err error) {
	a.obj, err = readNumbers(d, arrayName[T](), arena.SizeOf[T]())
	return err
}
