package tensor

import (
	"fmt"
	"slices"
	"strings"
)

// numpyNames are numpy's names of dtypes, without the byte order; it has no bfloat16 and no floats
// of 8 bits.
var numpyNames = [dtypes]string{
	Bool: "b1", Uint8: "u1", Int8: "i1", Int16: "i2", Int32: "i4", Int64: "i8",
	Float16: "f2", Float32: "f4", Float64: "f8", Complex64: "c8", Complex128: "c16",
	Uint16: "u2", Uint32: "u4", Uint64: "u8",
}

// Numpy returns numpy's dtype.str, such as "<f4" or "|b1", or "" where numpy has no such dtype.
func (d DType) Numpy() string {
	switch name := numpyNames[d]; {
	case name == "":
		return ""
	case d.Size() == 1:
		return "|" + name
	default:
		return "<" + name
	}
}

// ParseNumpy is the inverse of DType.Numpy; swapped says that the bytes of a number are in the
// other order. The error wraps ErrDType.
func ParseNumpy(s string) (d DType, swapped bool, err error) {
	if len(s) > 1 && strings.IndexByte("<>|=", s[0]) >= 0 {
		if i := slices.Index(numpyNames[:], s[1:]); i >= 0 {
			return DType(i), s[0] == '>' && DType(i).Size() > 1, nil
		}
	}
	return 0, false, fmt.Errorf("numpy dtype %.100q: %w", s, ErrDType)
}

// SwapBytes turns the bytes of each number in b around: from big-endian to little-endian and back.
func (d DType) SwapBytes(b []byte) {
	size := d.Size()
	if d.isComplex() {
		size /= 2
	}
	if size == 1 {
		return
	}
	for number := range slices.Chunk(b, size) {
		slices.Reverse(number)
	}
}

// CleanBools makes every byte that is neither 0 nor 1, which in other languages is true and in Go
// no bool, 1. It does nothing for other dtypes.
func (d DType) CleanBools(b []byte) {
	if d != Bool {
		return
	}
	for i, v := range b {
		if v > 1 {
			b[i] = 1
		}
	}
}
