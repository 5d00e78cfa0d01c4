package kernel

import "unsafe"

// A Whole is an operation on two integers, which wraps around.
type Whole int

// The operations on integers. Bits of uint8 are added, subtracted and multiplied as those of int8.
const (
	Plus Whole = iota
	Minus
	Times
	Larger
	Smaller

	wholes = iota
)

// integers is how many of the elements are integers; they are the first ones.
const integers = 5

// Combine overwrites elements of z with w of those of x and y, and returns how many: on a machine
// with instructions for it all but the last few, on others none. It leaves the others to its
// caller, as [Cast.Do] does. z may be x or y.
func Combine[T any](w Whole, x, y, z []T) int {
	var one T
	size, k := int(unsafe.Sizeof(one)), kind[T]()
	n := len(z) &^ (32/size - 1)
	if n == 0 || k < 0 || k >= integers || current.wholes[w][k] == nil {
		return 0
	}
	x, y = x[:n], y[:n]
	for i, m := range short(n) {
		current.wholes[w][k](m*size, (*byte)(unsafe.Pointer(&x[i])), (*byte)(unsafe.Pointer(&y[i])),
			(*byte)(unsafe.Pointer(&z[i])))
	}
	return n
}
