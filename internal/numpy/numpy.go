// Package numpy is what numpy calls dtypes, and how its bytes become those of tensors. It knows dtypes
// by the names that package tensor gives them, such as float32.
package numpy

import (
	"fmt"
	"slices"
	"strings"
)

// A dtype is one of package tensor.
type dtype struct {
	descr string // numpy's name without the byte order; empty where numpy has no such dtype
	size  int    // the bytes of one number: of a complex element there are two
}

// dtypes are those that numpy has, or whose numbers have more than one byte.
var dtypes = map[string]dtype{
	"bool": {"b1", 1}, "uint8": {"u1", 1}, "int8": {"i1", 1}, "int16": {"i2", 2}, "int32": {"i4", 4},
	"int64": {"i8", 8}, "float16": {"f2", 2}, "float32": {"f4", 4}, "float64": {"f8", 8},
	"complex64": {"c8", 4}, "complex128": {"c16", 8}, "uint16": {"u2", 2}, "uint32": {"u4", 4},
	"uint64": {"u8", 8}, "bfloat16": {"", 2},
}

// Descr returns numpy's dtype.str of a dtype, such as "<f4" or "|b1", or "" where numpy has no such
// dtype.
func Descr(name string) string {
	switch d := dtypes[name]; {
	case d.descr == "":
		return ""
	case d.size == 1:
		return "|" + d.descr
	default:
		return "<" + d.descr
	}
}

// Parse is the inverse of Descr; swapped says that the bytes of a number are in the other order. Of
// what is no dtype of package tensor, the name begins with "numpy" and is none either.
func Parse(descr string) (name string, swapped bool) {
	if len(descr) > 1 && strings.IndexByte("<>|=", descr[0]) >= 0 {
		for name, d := range dtypes {
			if d.descr == descr[1:] {
				return name, descr[0] == '>' && d.size > 1
			}
		}
	}
	return fmt.Sprintf("numpy %.100s", descr), false
}

// Swap turns the bytes of each number of a dtype in b around: from big-endian to little-endian and
// back.
func Swap(name string, b []byte) {
	size := dtypes[name].size
	if size <= 1 {
		return
	}
	for number := range slices.Chunk(b, size) {
		slices.Reverse(number)
	}
}

// Clean makes every byte of bools that is neither 0 nor 1, which in other languages is true and in Go
// no bool, 1. It does nothing for other dtypes.
func Clean(name string, b []byte) {
	if name != "bool" {
		return
	}
	for i, v := range b {
		if v > 1 {
			b[i] = 1
		}
	}
}
