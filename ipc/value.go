package ipc

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Value is a number in shared memory, for any processes of the domain. It is read and changed as
// a whole, with and without the Mutex; a Value whose Mutex is not used is Python's RawValue. Add
// loses no additions, as Python's v.value += 1 does. The Mutex is for changes of more than one
// number. A bool or a struct is a [Record]. The zero Value is closed.
type Value[T Number] struct{ Mutex }

// NewValue makes a value. The caller closes it.
func NewValue[T Number](v T) (*Value[T], error) {
	o, err := newNumbers[T](valueName[T](), 1)
	if err != nil {
		return nil, err
	}
	value := &Value[T]{mutexOf(o)}
	return value, value.Store(v)
}

func valueName[T Number]() string { return "Value[" + elemName[T]() + "]" }

// array is v as an array of one element.
func (v *Value[T]) array() *Array[T] { return &Array[T]{mutexOf(v.obj)} }

// Load returns the value.
func (v *Value[T]) Load() (T, error) { return v.array().At(0) }

// Store sets the value.
func (v *Value[T]) Store(n T) error { return v.array().Set(0, n) }

// Add adds delta and returns the sum. No addition is lost, although other processes add at the same
// time.
func (v *Value[T]) Add(delta T) (sum T, err error) { return v.array().Add(0, delta) }

// CompareAndSwap sets the value to n if it equals old, and reports whether it did.
func (v *Value[T]) CompareAndSwap(old, n T) (swapped bool, err error) {
	return v.array().CompareAndSwap(0, old, n)
}

// unmarshalWire reads the object that marshalWire wrote. The error is ErrType if its elements have
// another type.
func (v *Value[T]) unmarshalWire(d *codec.Decoder) (err error) {
	v.obj, err = readNumbers(d, valueName[T](), arena.SizeOf[T]())
	return err
}
