package tensor

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// A DType is the type of a tensor's elements. The numbers of the constants are part of the wire
// format, so they must not change.
type DType uint8

// The dtypes. Operations on Float16 and BFloat16 compute in float32 and round the result.
const (
	Bool DType = iota
	Uint8
	Int8
	Int16
	Int32
	Int64
	Float16
	BFloat16
	Float32
	Float64
	Complex64
	Complex128

	// Tensors of the following dtypes can be viewed, copied, converted, sent and written to files.
	// Operations panic with ErrOperand, as most of PyTorch's refuse them.
	Uint16
	Uint32
	Uint64
	Float8E4M3FN
	Float8E5M2

	dtypes = iota
)

// Elem is the constraint of the Go types of elements.
type Elem interface {
	~bool | ~uint8 | uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | F16 | BF16 | ~float32 |
		~float64 | ~complex64 | ~complex128
}

var dtypeInfo = [dtypes]struct {
	name string
	size int
}{
	{"bool", 1}, {"uint8", 1}, {"int8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8},
	{"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16},
	{"uint16", 2}, {"uint32", 4}, {"uint64", 8}, {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
}

// Size returns the size of one element in bytes. It panics if d is not one of the constants.
func (d DType) Size() int { return dtypeInfo[d].size }

// String returns the dtype's name in PyTorch without the prefix, such as "float32", or "dtype(n)"
// for a number n that is not a dtype.
func (d DType) String() string {
	if !d.valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypeInfo[d].name
}

func (d DType) valid() bool     { return d < dtypes }
func (d DType) isInteger() bool { return d >= Uint8 && d <= Int64 || d >= Uint16 && d <= Uint64 }
func (d DType) isFloat() bool   { return d >= Float16 && d <= Float64 || d >= Float8E4M3FN }
func (d DType) isComplex() bool { return d == Complex64 || d == Complex128 }
func (d DType) isKept() bool    { return d >= Uint16 } // a dtype without arithmetic

// ParseDType returns the dtype with the given name, such as float32 or torch.float32. The error
// wraps [ErrDType].
func ParseDType(s string) (DType, error) {
	name := strings.TrimPrefix(s, "torch.")
	for i, info := range dtypeInfo {
		if info.name == name {
			return DType(i), nil
		}
	}
	return 0, fmt.Errorf("parse dtype %q: %w", s, ErrDType)
}

// DTypeOf returns the dtype that corresponds to the Go type T.
func DTypeOf[T Elem]() DType {
	t := reflect.TypeFor[T]()
	switch t {
	case reflect.TypeFor[F16]():
		return Float16
	case reflect.TypeFor[BF16]():
		return BFloat16
	}
	switch t.Kind() {
	case reflect.Bool:
		return Bool
	case reflect.Uint8:
		return Uint8
	case reflect.Uint16:
		return Uint16
	case reflect.Uint32:
		return Uint32
	case reflect.Uint64:
		return Uint64
	case reflect.Int8:
		return Int8
	case reflect.Int16:
		return Int16
	case reflect.Int32:
		return Int32
	case reflect.Int64:
		return Int64
	case reflect.Float32:
		return Float32
	case reflect.Float64:
		return Float64
	case reflect.Complex64:
		return Complex64
	}
	return Complex128
}

// bytesAs reinterprets bytes as elements of type T, without a copy. b must be aligned for T. The
// result does not include the bytes of an incomplete last element.
func bytesAs[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// rawBytes reinterprets elements as bytes, without a copy.
func rawBytes[T any](s []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}
