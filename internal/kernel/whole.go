package kernel

import "unsafe"

// Whole is an operation on two integers, which wraps around on overflow.
type Whole int

// The operations on integers. Plus, Minus and Times of uint8 use the loops of int8, because the
// resulting bits are the same.
const (
	Plus Whole = iota
	Minus
	Times
	Larger
	Smaller

	wholes = iota
)

// integers is the number of integer element types, which come first in the order of [typeIndex].
const integers = 5

// Combine overwrites elements of z with w of x and y, and returns the number of computed
// elements. With vector instructions for T and w it computes all but the last few, at most 31,
// otherwise none. The caller must compute the rest, as for [Cast.Do]. x and y must be at least
// as long as z. z may be x or y.
func Combine[T any](w Whole, x, y, z []T) int {
	var one T
	size, k := int(unsafe.Sizeof(one)), typeIndex[T]()
	n := len(z) &^ (32/size - 1)
	if n == 0 || k < 0 || k >= integers || current.wholes[w][k] == nil {
		return 0
	}
	x, y = x[:n], y[:n]
	for i, m := range shortPieces(n) {
		current.wholes[w][k](m*size, (*byte)(unsafe.Pointer(&x[i])), (*byte)(unsafe.Pointer(&y[i])),
			(*byte)(unsafe.Pointer(&z[i])))
	}
	return n
}
