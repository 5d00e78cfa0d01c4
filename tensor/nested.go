package tensor

import (
	"fmt"
	"reflect"
	"runtime"
	"unsafe"
)

// FromNested returns a tensor on the heap with the numbers in nested slices or arrays, such as
// [][]float64 or [][]any. The result has no dimensions if v is a number. The error wraps
// [ErrNested] if the slices are not rectangular or contain a value that is not a number.
func FromNested(dt DType, v any) (*Tensor, error) {
	n := nest{}
	if err := n.measure(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	t := New(dt, n.shape...)
	n.cast, n.size = castFuncFor(dt, Complex128), dt.Size()
	n.whole = castFuncFor(dt, Int64)
	n.out = t.contiguousBytes()
	if err := n.read(reflect.ValueOf(v), 0); err != nil {
		return nil, err
	}
	return t, nil
}

// A nest is the state of reading nested slices into a tensor.
type nest struct {
	shape       []int
	cast, whole castFunc // from Complex128, and from Int64 to keep all bits of integers
	size        int
	out         []byte // the remaining elements to write
}

func unwrapValue(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

func isList(v reflect.Value) bool { return v.Kind() == reflect.Slice || v.Kind() == reflect.Array }

// measure sets the shape to the lengths of the first slices at each level. The error wraps
// ErrNested if there are more than maxDims levels.
func (n *nest) measure(v reflect.Value) error {
	for v = unwrapValue(v); isList(v); v = unwrapValue(v.Index(0)) {
		if len(n.shape) == maxDims {
			return fmt.Errorf("nested slices have more than %d levels: %w", maxDims, ErrNested)
		}
		n.shape = append(n.shape, v.Len())
		if v.Len() == 0 {
			return nil
		}
	}
	return nil
}

func (n *nest) read(v reflect.Value, dim int) error {
	v = unwrapValue(v)
	if dim < len(n.shape) {
		if !isList(v) || v.Len() != n.shape[dim] {
			return fmt.Errorf("got %v, want a list of length %d: %w", v, n.shape[dim], ErrNested)
		}
		for i := range v.Len() {
			if err := n.read(v.Index(i), dim+1); err != nil {
				return err
			}
		}
		return nil
	}
	return n.addNumber(v)
}

func (n *nest) addNumber(v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Bool:
		n.putNumber(n.whole, rawBytes([]int64{int64(boolToUint8(v.Bool()))}))
	case v.CanInt():
		n.putNumber(n.whole, rawBytes([]int64{v.Int()}))
	case v.CanUint():
		n.putNumber(n.whole, rawBytes([]int64{int64(v.Uint())}))
	case v.CanFloat():
		n.putNumber(n.cast, rawBytes([]complex128{complex(v.Float(), 0)}))
	case v.CanComplex():
		n.putNumber(n.cast, rawBytes([]complex128{v.Complex()}))
	default:
		return fmt.Errorf("got %v, want a number: %w", v, ErrNested)
	}
	return nil
}

func (n *nest) putNumber(cast castFunc, number []byte) {
	cast(n.out, 1, number, 1, 1)
	n.out = n.out[n.size:]
}

// ToNested returns the elements as nested []any, with one level for each dimension. Elements are
// bool, int64, float64 or complex128, or uint64 if the value of a Uint64 tensor exceeds an int64.
// It panics with [ErrMemory] if the slices would not fit in memory. The function [ToNested] returns
// typed slices, such as [][]float32.
func (t *Tensor) ToNested() any {
	must(t.checkNested(int(unsafe.Sizeof(any(nil)))))
	near, done := t.hostTensor()
	defer done()
	v := near.nestedList(0, near.offset)
	runtime.KeepAlive(t)
	return v
}

func (t *Tensor) nestedList(dim, at int) any {
	if dim == len(t.Shape()) {
		return t.boxElement(at)
	}
	list := make([]any, t.Shape()[dim])
	for i := range list {
		list[i] = t.nestedList(dim+1, at+i*t.Strides()[dim])
	}
	return list
}

func (t *Tensor) boxElement(at int) any {
	b := t.bytes()[at*t.dtype.Size():]
	switch t.dtype.promotionRank() {
	case 0:
		return b[0] != 0
	case 1:
		if v := castFirst[int64](Int64, t.dtype, b); v >= 0 || t.dtype != Uint64 {
			return v
		}
		return castFirst[uint64](Uint64, t.dtype, b)
	case 2:
		return castFirst[float64](Float64, t.dtype, b)
	}
	return castFirst[complex128](Complex128, t.dtype, b)
}

// castFirst returns the first element of b, which has dtype from, converted to the dtype to,
// which must be T's.
func castFirst[T Elem](to, from DType, b []byte) T {
	var v [1]T
	castFuncFor(to, from)(rawBytes(v[:]), 1, b, 1, 1)
	return v[0]
}
