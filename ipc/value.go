package ipc

import (
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Value is a number in shared memory. Any process of the domain may use it. It is read and
// written atomically, with or without the Mutex; a Value without use of its Mutex is Python's
// RawValue. Unlike Python's v.value += 1, [Value.Add] is atomic. The caller must hold the Mutex to
// change several numbers as one operation. For a bool or a struct, see [Record]. The zero Value is
// closed.
type Value[T Number] struct{ Mutex }

// NewValue returns a Value that is initialized to v. The caller must close it.
func NewValue[T Number](v T) (*Value[T], error) {
	o, err := newNumbers[T](valueName[T](), 1)
	if err != nil {
		return nil, err
	}
	value := &Value[T]{mutexOf(o)}
	return value, value.Store(v)
}

func valueName[T Number]() string { return "Value[" + elemName[T]() + "]" }

// array returns v as an array of one element. It shares v's object, so the caller must not close
// it.
func (v *Value[T]) array() *Array[T] { return &Array[T]{mutexOf(v.obj)} }

// Load atomically returns the value. It returns [ErrClosed] if v is closed.
func (v *Value[T]) Load() (T, error) { return v.array().At(0) }

// Store atomically sets the value.
func (v *Value[T]) Store(n T) error { return v.array().Set(0, n) }

// Add atomically adds delta and returns the sum. Concurrent additions by other processes are not
// lost.
func (v *Value[T]) Add(delta T) (sum T, err error) { return v.array().Add(0, delta) }

// CompareAndSwap atomically sets the value to n if it equals old, and reports whether it did.
func (v *Value[T]) CompareAndSwap(old, n T) (swapped bool, err error) {
	return v.array().CompareAndSwap(0, old, n)
}

// unmarshalWire decodes a Value. It returns [ErrType] if the number type differs from T.
func (v *Value[T]) unmarshalWire(d *codec.Decoder) (err error) {
	v.obj, err = readNumbers(d, valueName[T](), arena.SizeOf[T]())
	return err
}
