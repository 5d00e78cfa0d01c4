package numpy

import (
	"fmt"
	"slices"
	"strings"
)

// A dtype describes a dtype of package tensor.
type dtype struct {
	descr string // NumPy's name without the byte order; empty if NumPy has no such dtype
	size  int    // bytes of one number; a complex element consists of two
}

// dtypes lists the dtypes that NumPy supports, or that have numbers of more than one byte.
var dtypes = map[string]dtype{
	"bool": {"b1", 1}, "uint8": {"u1", 1}, "int8": {"i1", 1}, "int16": {"i2", 2}, "int32": {"i4", 4},
	"int64": {"i8", 8}, "float16": {"f2", 2}, "float32": {"f4", 4}, "float64": {"f8", 8},
	"complex64": {"c8", 4}, "complex128": {"c16", 8}, "uint16": {"u2", 2}, "uint32": {"u4", 4},
	"uint64": {"u8", 8}, "bfloat16": {"", 2},
}

// Descr returns NumPy's dtype.str of a dtype, such as "<f4" or "|b1". It returns "" if NumPy has no
// such dtype.
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

// Parse is the inverse of [Descr]. swapped reports whether the numbers are big-endian; the caller
// should then call [Swap]. For a dtype that package tensor does not have, name begins with "numpy "
// and is not a valid dtype name.
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

// Swap reverses the bytes of each number of a dtype in b, which converts between big-endian and
// little-endian. The length of b must be a multiple of the dtype's size. Swap does nothing for
// an unknown dtype.
func Swap(name string, b []byte) {
	size := dtypes[name].size
	if size <= 1 {
		return
	}
	for number := range slices.Chunk(b, size) {
		slices.Reverse(number)
	}
}

// Clean sets every byte of bools that is neither 0 nor 1 to 1, because such a byte is a valid true
// in other languages but must not occur in a Go bool. It does nothing for other dtypes.
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
