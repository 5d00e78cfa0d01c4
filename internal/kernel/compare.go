package kernel

import "unsafe"

// A Comparison is a relation of two numbers. Of NaN and any number NotEqual is true, and others are
// false.
type Comparison int

// The comparisons. The others are these of exchanged numbers.
const (
	Equal Comparison = iota
	NotEqual
	Less
	LessOrEqual

	comparisons = iota
)

// elements is how many kinds of numbers are compared.
const elements = 7

// kind returns which of the elements T is, or -1.
func kind[T any]() int {
	var v T
	switch any(v).(type) {
	case uint8:
		return 0
	case int8:
		return 1
	case int16:
		return 2
	case int32:
		return 3
	case int64:
		return 4
	case float32:
		return 5
	case float64:
		return 6
	}
	return -1
}

// Compare sets elements of z to 1 where c is true of those of x and y, and to 0 elsewhere, and
// returns how many: on a machine with instructions for it all but the last few, on others none. It
// leaves the others to its caller, as [Cast.Do] does.
func Compare[T any](c Comparison, x, y []T, z []uint8) int {
	n, k := len(z)&^31, kind[T]()
	if k < 0 || n == 0 || current.compare[c][k] == nil {
		return 0
	}
	x, y = x[:n], y[:n]
	for i, m := range short(n) {
		current.compare[c][k](m, (*byte)(unsafe.Pointer(&x[i])), (*byte)(unsafe.Pointer(&y[i])), &z[i])
	}
	return n
}
