package kernel

import "unsafe"

// Comparison is a relation of two numbers. If one is NaN, NotEqual is true and the others are
// false.
type Comparison int

// The comparisons. Greater and greater-or-equal are these with exchanged operands.
const (
	Equal Comparison = iota
	NotEqual
	Less
	LessOrEqual

	comparisons = iota
)

// elements is the number of element types that can be compared.
const elements = 7

// typeIndex returns the index of T in the tables of element types, 0 to 6, or -1 if T has no
// vector instructions.
func typeIndex[T any]() int {
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

// Compare sets z[i] to 1 if c holds for x[i] and y[i], and to 0 otherwise, and returns the
// number of compared elements. With vector instructions for T this is len(z) rounded down to a
// multiple of 32, otherwise 0. The caller must compare the rest, as for [Cast.Do]. x and y must
// be at least as long as z.
func Compare[T any](c Comparison, x, y []T, z []uint8) int {
	n, k := len(z)&^31, typeIndex[T]()
	if k < 0 || n == 0 || current.compare[c][k] == nil {
		return 0
	}
	x, y = x[:n], y[:n]
	for i, m := range shortPieces(n) {
		current.compare[c][k](m, (*byte)(unsafe.Pointer(&x[i])), (*byte)(unsafe.Pointer(&y[i])), &z[i])
	}
	return n
}
