package kernel

import "math"

// PowerOf returns x to the power of y. It treats 0, infinities and NaN like [math.Pow]; the error
// of all other results is at most one unit in the last place. On amd64 math.Pow treats subnormal
// numbers like the smallest normal one, and its many multiplications lose many units if y is large.
//
// The result is e to the power of y·log|x|. A unit in the last place of the result is 2^-53 of the
// exponent, which may be 700. The logarithm and the product are therefore double-double numbers:
// unevaluated sums of two float64, with about 106 bits.
func PowerOf(x, y float64) float64 {
	switch {
	case x == 0 || y == 0 || x == 1 || x-x != 0 || y-y != 0:
		return math.Pow(x, y)
	case x > 0:
		return expOf(timesLog(x, y))
	case y != math.Trunc(y):
		return math.NaN()
	case math.Mod(y, 2) != 0:
		return -expOf(timesLog(-x, y))
	}
	return expOf(timesLog(-x, y))
}

// ln(2) as a sum. The first part has 33 bits, so its product with a binary exponent is exact.
const (
	ln2High = 0x1.62e42feep-1
	ln2Low  = math.Ln2 - ln2High
)

// thirdLow is 1/3 minus the nearest float64.
const thirdLow = 1./3 - 0x15555555555555p-54

// logParts are 1/29, 1/27 and so on to 1/5.
var logParts = [...]float64{1. / 29, 1. / 27, 1. / 25, 1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11,
	1. / 9, 1. / 7, 1. / 5}

// timesLog returns y·log(x) as the sum of two numbers. x must be finite and positive, and y
// finite. With x = m·2^k the logarithm is k·ln(2) plus twice the series of atanh(s) = s + s³/3
// + s⁵/5 + … for s = (m-1)/(m+1). The first two terms of the series are computed as
// double-double numbers.
func timesLog(x, y float64) (high, low float64) {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	top, bottom := m-1, m+1
	lost := m - (bottom - 1)
	s := top / bottom
	sLow := (math.FMA(-s, bottom, top) - float64(s*lost)) / bottom
	z, zLow := squareExact(s, sLow)
	c := float64(s * z) // the conversions prevent fusing a product and a sum
	cLow := math.FMA(s, z, -c) + math.FMA(s, zLow, float64(sLow*z))
	third := float64(c * (1. / 3))
	thirdRest := math.FMA(c, 1./3, -third) + math.FMA(c, thirdLow, float64(cLow*(1./3)))
	tail := logParts[0]
	for _, part := range logParts[1:] {
		tail = math.FMA(tail, z, part)
	}
	tail = float64(tail * float64(c*z))

	sum := s + third
	sumLow := (s - sum) + third + (sLow + thirdRest + tail)
	whole := float64(float64(k) * ln2High)
	log := whole + 2*sum
	var logLow float64
	if k == 0 {
		logLow = 2 * sumLow
	} else { // whole is the larger part
		logLow = (whole - log) + 2*sum + math.FMA(float64(k), ln2Low, 2*sumLow)
	}
	near := log + logLow
	rest := (log - near) + logLow
	high = float64(y * near)
	return high, math.FMA(y, near, -high) + float64(y*rest)
}

// squareExact returns the square of x + low as the sum of two numbers.
func squareExact(x, low float64) (high, rest float64) {
	high = float64(x * x)
	return high, math.FMA(x, x, -high) + float64(2*x*low)
}

// expParts are 1/n! for n from 13 down to 2.
var expParts = [...]float64{1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2}

// expOf returns e to the power of x + low. It returns +∞ for x above 710, and 0 below -746.
func expOf(x, low float64) float64 {
	switch {
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	n := math.RoundToEven(x * (1 / math.Ln2))
	rest := math.FMA(-n, ln2High, x) // exact, because the operands are close multiples of the same last bit
	near := math.FMA(-n, ln2Low, rest)
	nearLow := math.FMA(-n, ln2Low, rest-near) + low
	r := near + nearLow
	rLow := (near - r) + nearLow
	tail := expParts[0]
	for _, part := range expParts[1:] {
		tail = math.FMA(tail, r, part)
	}
	tail = float64(tail * float64(r*r))
	one := 1 + r
	return math.Ldexp(one+((1-one)+r+(rLow+tail)), int(n))
}
