package ipc

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Record is a value of fixed layout in shared memory: a bool, a number, an array of these, or a
// struct of these. Any process of the domain may use it. It corresponds to a Python Value of c_bool
// or of a ctypes.Structure. For a single number, use a [Value], which has atomic operations.
//
//	type point struct{ X, Y float64 }
//
//	p, err := ipc.NewRecord(point{1, 2})
//
// A bool is read and written atomically. A Load of a larger value may see a partial Store by
// another process, so both processes must hold the Mutex:
//
//	if err := p.Lock(ctx); err != nil {
//		return err
//	}
//	defer p.Unlock()
//
// The zero Record is closed.
type Record[T any] struct{ Mutex }

// NewRecord returns a record with the initial value v. The caller must close it. It returns
// [ErrType] if T has no fixed layout; the message contains the path of the offending part.
func NewRecord[T any](v T) (*Record[T], error) {
	o, err := newElements[T]("Record", 1)
	if err != nil {
		return nil, err
	}
	record := &Record[T]{mutexOf(o)}
	return record, record.Store(v)
}

func (r *Record[T]) array() *Records[T] { return &Records[T]{mutexOf(r.obj)} }

// Load returns the value. The caller must hold the Mutex unless T is a bool.
func (r *Record[T]) Load() (T, error) { return r.array().At(0) }

// Store sets the value. The caller must hold the Mutex unless T is a bool.
func (r *Record[T]) Store(v T) error { return r.array().Set(0, v) }

// Records is a fixed-length array of values of fixed layout in shared memory. It corresponds to a
// Python Array of c_bool or of a ctypes.Structure. Each element is like a [Record]. One Mutex
// guards all of them. The zero Records is closed.
type Records[T any] struct{ Mutex }

// NewRecords returns n zeroed records. The caller must close them. It returns [ErrSize] if n is
// negative. It returns [ErrType] if T has no fixed layout; the message contains the path of the
// offending part.
func NewRecords[T any](n int) (*Records[T], error) {
	o, err := newElements[T]("Records", n)
	if err != nil {
		return nil, err
	}
	return &Records[T]{mutexOf(o)}, nil
}

// newElements allocates an object with a mutex and n zero values of type T. kind is "Record" or
// "Records". It returns [ErrType] if T has no fixed layout. It returns [ErrSize] if n is
// negative.
func newElements[T any](kind string, n int) (*object, error) {
	name, err := recordName[T](kind)
	if err != nil {
		return nil, err
	}
	return newCells(name, n, arena.SizeOf[T]())
}

// readElements decodes an object from newElements. It returns [ErrType] if T has another layout
// here.
func readElements[T any](d *codec.Decoder, kind string) (*object, error) {
	name, err := recordName[T](kind)
	if err != nil {
		return nil, err
	}
	return readNumbers(d, name, arena.SizeOf[T]())
}

// Len returns the number of records, or 0 if r is closed.
func (r *Records[T]) Len() int { return r.obj.elemCount() }

// At returns record i. A negative i counts from the end. It returns [ErrIndex] if i is out of
// range. As with [Record.Load], the caller must hold the Mutex unless T is a bool.
func (r *Records[T]) At(i int) (v T, err error) {
	err = r.withRecords(i, 1, func(in []T) { v = in[0] })
	return v, err
}

// Set sets record i to v. A negative i counts from the end. It returns [ErrIndex] if i is out of
// range. As with [Record.Store], the caller must hold the Mutex unless T is a bool.
func (r *Records[T]) Set(i int, v T) error {
	return r.withRecords(i, 1, func(in []T) { in[0] = v })
}

// Read copies the records starting at index i into dst, until dst is full. A negative i counts
// from the end. It returns [ErrIndex] if there are fewer than len(dst) records from i on; then
// dst is unchanged. As with [Record.Load], the caller must hold the Mutex unless T is a bool.
func (r *Records[T]) Read(i int, dst []T) error {
	return r.withRecords(i, len(dst), func(in []T) { copy(dst, in) })
}

// Write copies src to the records starting at index i. A negative i counts from the end. It
// returns [ErrIndex] if there are fewer than len(src) records from i on; then it writes none. As
// with [Record.Store], the caller must hold the Mutex unless T is a bool.
func (r *Records[T]) Write(i int, src []T) error {
	return r.withRecords(i, len(src), func(in []T) { copy(in, src) })
}

// withRecords calls f with the n records starting at index i; the slice aliases the shared
// memory and is valid until f returns. A negative i counts from the end. It returns [ErrIndex]
// if the range is out of bounds, and [ErrClosed] if r is closed.
func (r *Records[T]) withRecords(i, n int, f func([]T)) error {
	return r.obj.withSpan(i, n, func(at int) { f(arena.ValuesIn[T](r.obj.sync.Data())[at : at+n]) })
}

// unmarshalWire decodes a Record. It returns [ErrType] if T or its layout differs.
func (r *Record[T]) unmarshalWire(d *codec.Decoder) (err error) {
	r.obj, err = readElements[T](d, "Record")
	return err
}

// unmarshalWire decodes Records. It returns [ErrType] if T or its layout differs.
func (r *Records[T]) unmarshalWire(d *codec.Decoder) (err error) {
	r.obj, err = readElements[T](d, "Records")
	return err
}
