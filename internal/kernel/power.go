package kernel

import "math"

// PowerOf is x to the power of y, as math.Pow has it for 0, infinities and NaN, and within a unit
// in the last place for all other numbers. math.Pow takes subnormal numbers for the smallest normal
// ones on amd64, and multiplies so often that it is off by many units where y is large.
//
// It is e to the power of y·log|x|. A unit in the last place of the result is 2^-53 of the
// exponent, which may be 700, so the logarithm and the product are sums of two numbers, of about
// 106 bits.
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

// The logarithm of 2 as a sum: the first part has 33 bits, so that its product with an exponent is
// exact.
const (
	ln2High = 0x1.62e42feep-1
	ln2Low  = math.Ln2 - ln2High
)

// thirdLow is 1/3 less its nearest float64.
const thirdLow = 1./3 - 0x15555555555555p-54

// logParts are 1/5, 1/7 and so on, the last one first.
var logParts = [...]float64{1. / 29, 1. / 27, 1. / 25, 1. / 23, 1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11,
	1. / 9, 1. / 7, 1. / 5}

// timesLog returns y·log(x) as the sum of two numbers, for a finite x above 0. With x = m·2^k it is
// k·log(2) and twice the series of atanh(s) = s + s³/3 + s⁵/5 + … for s = (m-1)/(m+1), of which the
// first two terms are sums of two numbers.
func timesLog(x, y float64) (high, low float64) {
	m, k := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	top, bottom := m-1, m+1
	lost := m - (bottom - 1)
	s := top / bottom
	sLow := (math.FMA(-s, bottom, top) - float64(s*lost)) / bottom
	z, zLow := square(s, sLow)
	c := float64(s * z) // the conversions keep the compiler from fusing a product and a sum
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

// square returns the square of a sum of two numbers.
func square(x, low float64) (high, rest float64) {
	high = float64(x * x)
	return high, math.FMA(x, x, -high) + float64(2*x*low)
}

// expParts are 1/n! for n from 13 to 2.
var expParts = [...]float64{1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
	1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 1. / 2}

// expOf returns e to the power of x + low.
func expOf(x, low float64) float64 {
	switch {
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	}
	n := math.RoundToEven(x * (1 / math.Ln2))
	rest := math.FMA(-n, ln2High, x) // exact: both are multiples of one last bit, and close
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
