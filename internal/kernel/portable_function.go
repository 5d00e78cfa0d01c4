package kernel

import (
	"math"
	"slices"
	"unsafe"
)

// portableFunctions returns the loops of [Map] in plain Go, by function. They compute in
// float64. Rounding its square roots and quotients again yields the correctly rounded results
// of float32.
func portableFunctions[F Float]() [functions]func(n int, x, y *F) {
	return [functions]func(n int, x, y *F){
		Neg:        func(n int, x, y *F) { each(n, x, y, func(x float64) float64 { return -x }) },
		Abs:        func(n int, x, y *F) { each(n, x, y, math.Abs) },
		Sign:       func(n int, x, y *F) { each(n, x, y, sign) },
		Floor:      func(n int, x, y *F) { each(n, x, y, math.Floor) },
		Ceil:       func(n int, x, y *F) { each(n, x, y, math.Ceil) },
		Round:      func(n int, x, y *F) { each(n, x, y, math.RoundToEven) },
		Trunc:      func(n int, x, y *F) { each(n, x, y, math.Trunc) },
		Sqrt:       func(n int, x, y *F) { each(n, x, y, math.Sqrt) },
		Rsqrt:      func(n int, x, y *F) { each(n, x, y, func(x float64) float64 { return 1 / math.Sqrt(x) }) },
		Reciprocal: func(n int, x, y *F) { each(n, x, y, func(x float64) float64 { return 1 / x }) },
		Cube:       func(n int, x, y *F) { each(n, x, y, func(x float64) float64 { return float64(F(x*x)) * x }) },
		Log:        func(n int, x, y *F) { each(n, x, y, LogOf) },
		Log1p:      func(n int, x, y *F) { each(n, x, y, math.Log1p) },
		Expm1:      func(n int, x, y *F) { each(n, x, y, math.Expm1) },
		Sin:        func(n int, x, y *F) { each(n, x, y, math.Sin) },
		Cos:        func(n int, x, y *F) { each(n, x, y, math.Cos) },
		Atan:       func(n int, x, y *F) { each(n, x, y, math.Atan) },
		Erf:        func(n int, x, y *F) { each(n, x, y, math.Erf) },
	}
}

// polar is the loop polar in plain Go: y = √(-2·log(x)/x). The logarithm is the series of
// atanh((m-1)/(m+1)) for a significand m near 1. Its error is a few units in the last place.
// Each step is rounded separately, as in assembly: a conversion to float64 prevents the
// compiler from fusing a product and a sum, see
// https://go.dev/ref/spec#Floating_point_operators.
func polar[F Float](n int, x, y *F) {
	each(n, x, y, func(x float64) float64 {
		m, e := math.Frexp(x)
		if m < math.Sqrt2/2 {
			m, e = 2*m, e-1
		}
		s := (m - 1) / (m + 1)
		square := float64(s * s)
		sum := 0.0
		for _, c := range oddParts {
			sum = float64(sum*square) + c
		}
		return math.Sqrt(-2 * (float64(2*s*sum) + float64(float64(e)*math.Ln2)) / x)
	})
}

// oddParts are 1/25, 1/23 and so on to 1.
var oddParts = [...]float64{
	1. / 25, 1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1,
}

// orPortable returns the functions of a level, with those that are nil replaced by the portable
// ones.
func orPortable[F Float](of [functions]func(n int, x, y *F)) [functions]func(n int, x, y *F) {
	for i, f := range portableFunctions[F]() {
		if of[i] == nil {
			of[i] = f
		}
	}
	return of
}

// sign returns 1, -1 or 0 as x is positive, negative or zero. It returns 0 for NaN.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// LogOf is math.Log with correct results for subnormal numbers. On amd64 math.Log treats them like
// the smallest normal number.
func LogOf(x float64) float64 {
	if x > 0 && x < 0x1p-1022 {
		return math.Log(x*0x1p52) - 52*math.Ln2
	}
	return math.Log(x)
}

func larger[F Float](n int, x, y, z *F)  { zip(n, x, y, z, func(x, y F) F { return max(x, y) }) }
func smaller[F Float](n int, x, y, z *F) { zip(n, x, y, z, func(x, y F) F { return min(x, y) }) }

func largest[F Float](n int, x *F) F  { return slices.Max(unsafe.Slice(x, n)) }
func smallest[F Float](n int, x *F) F { return slices.Min(unsafe.Slice(x, n)) }

func columnsLargest[F Float](rows, n int, x *F, ld int, y *F) {
	for r := range rows {
		larger(n, y, elementPtr(x, r*ld), y)
	}
}

func columnsSmallest[F Float](rows, n int, x *F, ld int, y *F) {
	for r := range rows {
		smaller(n, y, elementPtr(x, r*ld), y)
	}
}

func clamp[F Float](n int, lo, hi F, x, y *F) {
	each(n, x, y, func(x float64) float64 { return min(max(x, float64(lo)), float64(hi)) })
}
