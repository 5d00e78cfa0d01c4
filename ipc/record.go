package ipc

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Record is a value of fixed layout in shared memory, for any processes of the domain: a bool, a
// number, an array of those, or a struct of them all. It is what a Value of c_bool or of a
// ctypes.Structure is in Python. For a number use a [Value], which adds.
//
//	type point struct{ X, Y float64 }
//
//	p, err := ipc.NewRecord(point{1, 2})
//
// A bool is read and written as a whole. Of anything larger Load may see a half of what another
// process stores at the same time, so both hold the Mutex:
//
//	if err := p.Lock(ctx); err != nil {
//		return err
//	}
//	defer p.Unlock()
//
// The zero Record is closed.
type Record[T any] struct{ Mutex }

// NewRecord makes a record. The caller closes it. The error is ErrType if T has no fixed layout,
// and says which part of it has none.
func NewRecord[T any](v T) (*Record[T], error) {
	o, err := newElements[T]("Record", 1)
	if err != nil {
		return nil, err
	}
	record := &Record[T]{mutexOf(o)}
	return record, record.Store(v)
}

func (r *Record[T]) array() *Records[T] { return &Records[T]{mutexOf(r.obj)} }

// Load returns the value.
func (r *Record[T]) Load() (T, error) { return r.array().At(0) }

// Store sets the value.
func (r *Record[T]) Store(v T) error { return r.array().Set(0, v) }

// Records are a fixed number of values of fixed layout in shared memory: what an Array of c_bool or
// of a ctypes.Structure is in Python. Each is like a [Record]; one Mutex is for all. The zero
// Records are closed.
type Records[T any] struct{ Mutex }

// NewRecords makes n records of zeroes, ErrSize if n is below 0. The caller closes them. The error
// is ErrType if T has no fixed layout, and says which part of it has none.
func NewRecords[T any](n int) (*Records[T], error) {
	o, err := newElements[T]("Records", n)
	if err != nil {
		return nil, err
	}
	return &Records[T]{mutexOf(o)}, nil
}

// newElements makes an object of a lock and n values of T, after a look at its layout.
func newElements[T any](kind string, n int) (*object, error) {
	name, err := recordName[T](kind)
	if err != nil {
		return nil, err
	}
	return newCells(name, n, arena.SizeOf[T]())
}

// readElements reads what newElements has made, if T has the same layout here.
func readElements[T any](d *codec.Decoder, kind string) (*object, error) {
	name, err := recordName[T](kind)
	if err != nil {
		return nil, err
	}
	return readNumbers(d, name, arena.SizeOf[T]())
}

// Len returns the number of records, 0 if they are closed.
func (r *Records[T]) Len() int { return r.obj.count() }

// At returns record i. Below 0, i counts from the end.
func (r *Records[T]) At(i int) (v T, err error) {
	err = r.with(i, 1, func(in []T) { v = in[0] })
	return v, err
}

// Set sets record i. Below 0, i counts from the end.
func (r *Records[T]) Set(i int, v T) error {
	return r.with(i, 1, func(in []T) { in[0] = v })
}

// Read reads the records from i on into all of dst. Below 0, i counts from the end.
func (r *Records[T]) Read(i int, dst []T) error {
	return r.with(i, len(dst), func(in []T) { copy(dst, in) })
}

// Write writes src to the records from i on. Below 0, i counts from the end.
func (r *Records[T]) Write(i int, src []T) error {
	return r.with(i, len(src), func(in []T) { copy(in, src) })
}

// with calls f with the n records from i on.
func (r *Records[T]) with(i, n int, f func([]T)) error {
	return r.obj.span(i, n, func(at int) { f(arena.ValuesIn[T](r.obj.sync.Data())[at : at+n]) })
}

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if its elements have
// another type.
func (r *Record[T]) unmarshalWire(d *codec.Decoder) (err error) {
	r.obj, err = readElements[T](d, "Record")
	return err
}

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if its elements have
// another type.
func (r *Records[T]) unmarshalWire(d *codec.Decoder) (err error) {
	r.obj, err = readElements[T](d, "Records")
	return err
}
