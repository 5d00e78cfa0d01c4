package tensor

import (
	"fmt"
	"reflect"
	"runtime"
	"unsafe"
)

// ToNested returns the elements of t as nested slices of type T, like a typed tolist.
//
//	rows, err := tensor.ToNested[[][]float32](t)
//
// T must have one level of slices, or of arrays with the right length, for each dimension of t, and
// a numeric element type. For T any, see the method [Tensor.ToNested]. Elements are only converted
// if they keep their values: bool to all types, integers to floats and to integer types in range,
// floats to floats and complex numbers. The error wraps [ErrNested] if T has another depth or
// cannot represent an element, or [ErrMemory] if the result would not fit in memory. The result
// does not share memory with t.
func ToNested[T any](t *Tensor) (nested T, err error) {
	out := reflect.ValueOf(&nested).Elem()
	if err := t.checkNestType(out.Type()); err != nil {
		return nested, err
	}
	near, done := t.hostTensor()
	defer done()
	if err := near.nestInto(out, 0, near.offset); err != nil {
		var none T
		return none, err
	}
	runtime.KeepAlive(t)
	return nested, nil
}

// checkNested returns an error that wraps ErrMemory if nested slices of t with elements of each
// bytes do not fit in memory.
func (t *Tensor) checkNested(each int) error {
	const header = 24 // size of a slice header in bytes
	n, size := 1, 0
	for i, k := range t.Shape() {
		if n *= k; i < len(t.Shape())-1 {
			size += n * header
		} else {
			size += n * each
		}
		if n > maxHeap/header || size > maxHeap {
			return fmt.Errorf("%w: nested slices of shape %v", ErrMemory, t.Shape())
		}
	}
	return checkMemory(size)
}

// checkNestType returns an error that wraps ErrNested unless type n can represent the shape and
// the dtype of t, or ErrMemory if the result would not fit in memory.
func (t *Tensor) checkNestType(n reflect.Type) error {
	leaf := n
	for dim, size := range t.Shape() {
		switch {
		case leaf.Kind() == reflect.Slice:
		case leaf.Kind() == reflect.Array && leaf.Len() == size:
		default:
			return fmt.Errorf("%w: convert a tensor of shape %v to %v: dimension %d does not match %v",
				ErrNested, t.Shape(),
				n, dim, leaf)
		}
		leaf = leaf.Elem()
	}
	if err := t.checkNested(int(leaf.Size())); err != nil {
		return err
	}
	if leaf.Kind() == reflect.Interface && leaf.NumMethod() == 0 {
		return nil
	}
	to, ok := dtypeOf(leaf)
	switch {
	case !ok:
		return fmt.Errorf("%w: convert a tensor of shape %v to %v: %v is not a number type",
			ErrNested, t.Shape(), n, leaf)
	case to.promotionRank() < t.dtype.promotionRank():
		return fmt.Errorf("%w: conversion of %v to %v would lose information: convert the tensor with To first",
			ErrNested, t.dtype, n)
	}
	return nil
}

// dtypeOf returns the dtype with the memory representation of type t, or false if there is none.
func dtypeOf(t reflect.Type) (DType, bool) {
	switch t {
	case reflect.TypeFor[F16]():
		return Float16, true
	case reflect.TypeFor[BF16]():
		return BFloat16, true
	}
	dt, ok := kindDTypes[t.Kind()]
	return dt, ok
}

var kindDTypes = map[reflect.Kind]DType{
	reflect.Bool: Bool, reflect.Int: Int64, reflect.Uint: Uint64,
	reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64,
	reflect.Uint8: Uint8, reflect.Uint16: Uint16, reflect.Uint32: Uint32, reflect.Uint64: Uint64,
	reflect.Float32: Float32, reflect.Float64: Float64, reflect.Complex64: Complex64, reflect.Complex128: Complex128,
}

// nestInto sets out to nested slices of the elements, from position at on, for the dimensions
// from dim on. t must be on the host, and checkNestType must have accepted the type. The error
// wraps ErrNested if the type cannot represent an element.
func (t *Tensor) nestInto(out reflect.Value, dim, at int) error {
	switch {
	case dim == len(t.Shape()):
		return t.convertInto(out, at, 0, 1)
	case out.Kind() == reflect.Slice:
		out.Set(reflect.MakeSlice(out.Type(), t.Shape()[dim], t.Shape()[dim]))
	}
	if dim == len(t.Shape())-1 && t.Shape()[dim] > 0 {
		return t.convertInto(out.Index(0), at, t.Strides()[dim], t.Shape()[dim])
	}
	for i := range t.Shape()[dim] {
		if err := t.nestInto(out.Index(i), dim+1, at+i*t.Strides()[dim]); err != nil {
			return err
		}
	}
	return nil
}

// convertInto converts n elements, stride elements apart, from position at on, and writes them to
// adjacent memory from first on. The error wraps ErrNested if the type of first cannot represent
// one of them.
func (t *Tensor) convertInto(first reflect.Value, at, stride, n int) error {
	if first.Kind() == reflect.Interface {
		boxes := unsafe.Slice((*any)(first.Addr().UnsafePointer()), n)
		for i := range boxes {
			boxes[i] = t.boxElement(at + i*stride)
		}
		return nil
	}
	to, _ := dtypeOf(first.Type())
	for i := 0; to.isNarrowerThan(t.dtype) && i < n; i++ {
		if v := t.boxElement(at + i*stride); !canRepresent(first, v) {
			return fmt.Errorf("%w: element %v does not fit %v: convert the tensor with To first",
				ErrNested, v, first.Type())
		}
	}
	size := t.dtype.Size()
	out := unsafe.Slice((*byte)(first.Addr().UnsafePointer()), n*to.Size())
	castFuncFor(to, t.dtype)(out, 1, t.bytes()[at*size:], stride, n)
	return nil
}

// isNarrowerThan reports whether some integers of s cannot be represented in d. It is false
// unless both are integer dtypes.
func (d DType) isNarrowerThan(s DType) bool {
	if !d.isInteger() || !s.isInteger() {
		return false
	}
	return s.isSigned() && !d.isSigned() || d.Size() < s.Size() || d.isSigned() && !s.isSigned() && d.Size() == s.Size()
}

func (d DType) isSigned() bool { return d >= Int8 && d <= Int64 }

// canRepresent reports whether to can represent an integer v, which must be an int64 or uint64.
func canRepresent(to reflect.Value, v any) bool {
	if n, ok := v.(uint64); ok {
		return to.CanUint() && !to.OverflowUint(n)
	}
	n := v.(int64)
	if to.CanInt() {
		return !to.OverflowInt(n)
	}
	return n >= 0 && !to.OverflowUint(uint64(n))
}
