package ptx

import (
	"fmt"
	"math"
)

// The functions in this file compute in float64; t must be Float64.

// inFloat64 maps operations on floats to functions that compute in float64.
var inFloat64 = map[string]opFunc{
	"Exp": exp, "Expm1": expm1, "Log": log, "Log1p": log1p, "Sin": sine(0), "Cos": sine(1), "Tanh": tanh,
	"Sigmoid": sigmoid, "Erf": erf,
	"Power": power, "Remainder": remainder, "FloorDivide": floorDivide,
	"Hypot": hypot, "Atan2": atan2, "Logaddexp": logAddExp,
	"Rsqrt": func(a *asm, t Type, x ...string) string {
		return a.emitResult("rcp.rn.f64", a.emitResult("sqrt.rn.f64", x[0]))
	},
}

// horner evaluates a polynomial at x. The constant coefficient comes first.
func (a *asm) horner(x string, coefficients []float64) string {
	n := len(coefficients) - 1
	y := a.emitResult("mov.f64", c(coefficients[n]))
	for i := n - 1; i >= 0; i-- {
		y = a.emitResult("fma.rn.f64", y, x, c(coefficients[i]))
	}
	return y
}

// factorials returns n coefficients: 1/from!, 1/(from+step)!, …. With a step of 2 their signs
// alternate.
func factorials(from, step, n int) (out []float64) {
	sign := 1.
	for i := range n {
		out = append(out, sign/math.Gamma(float64(from+i*step+1)))
		if step == 2 {
			sign = -sign
		}
	}
	return out
}

// nanOf returns x if x is NaN, and v otherwise.
func (a *asm) nanOf(x, v string) string {
	return a.emitResult("selp.f64", x, v, a.emitResult("setp.nan.f64", x, x))
}

func (a *asm) clamp(x string, lo, hi float64) string {
	return a.emitResult("max.f64", a.emitResult("min.f64", x, c(hi)), c(lo))
}

// ln 2 and π/2 as sums of parts. The first part of ln 2 ends in zero bits, so that its small
// multiples are exact.
const (
	ln2High = 0x1.62e42fee00000p-1
	ln2Low  = math.Ln2 - ln2High

	rightHigh   = 0x1.921fb54442d18p+0
	rightMiddle = 0x1.1a62633145c07p-54
	rightLow    = -0x1.f1976b7ed8fbcp-110
)

// exp returns eˣ, computed as 2ᵏ·eʳ for an integer k and a small r. It multiplies by 2ᵏ in two
// steps, because 2ᵏ itself may overflow or underflow.
func exp(a *asm, t Type, x ...string) string {
	v := a.clamp(x[0], -800, 800)
	k := a.emitResult("cvt.rni.f64.f64", a.emitResult("mul.rn.f64", v, c(math.Log2E)))
	rest := a.emitResult("fma.rn.f64", k, c(-ln2Low), a.emitResult("fma.rn.f64", k, c(-ln2High), v))
	y := a.horner(rest, factorials(0, 1, 15))
	whole := a.emitResult("cvt.rzi.s64.f64", k)
	half := a.emitResult("shr.s64", whole, "1")
	for _, n := range []string{half, a.emitResult("sub.s64", whole, half)} {
		y = a.emitResult("mul.rn.f64", y, a.emitResult("shl.b64", a.emitResult("add.s64", n, "1023"), "52"))
	}
	return a.nanOf(x[0], y)
}

// expm1 returns eˣ - 1. It uses a series near 0.
func expm1(a *asm, t Type, x ...string) string {
	near := a.emitResult("mul.rn.f64", x[0], a.horner(x[0], factorials(1, 1, 15)))
	far := a.emitResult("sub.rn.f64", exp(a, t, x...), c(1))
	return a.emitResult("selp.f64", near, far, a.emitResult("setp.lt.f64", a.emitResult("abs.f64", x[0]), c(0.4)))
}

// sigmoid returns 1/(1+e⁻ˣ). It computes e/(1+e) for e = eˣ if x is negative, which keeps the
// precision of tiny results.
func sigmoid(a *asm, t Type, x ...string) string {
	e := exp(a, t, a.emitResult("neg.f64", a.emitResult("abs.f64", x[0])))
	above := a.emitResult("selp.f64", c(1), e, a.emitResult("setp.ge.f64", x[0], c(0)))
	return a.emitResult("div.rn.f64", above, a.emitResult("add.rn.f64", e, c(1)))
}

func tanh(a *asm, t Type, x ...string) string {
	size := a.emitResult("min.f64", a.emitResult("abs.f64", x[0]), c(22))
	e := expm1(a, t, a.emitResult("add.rn.f64", size, size))
	return a.nanOf(x[0], a.signOf(x[0], a.emitResult("div.rn.f64", e, a.emitResult("add.rn.f64", e, c(2)))))
}

// signOf returns v with the sign of x.
func (a *asm) signOf(x, v string) string {
	sign := a.emitResult("and.b64", x, "0x8000000000000000")
	return a.emitResult("or.b64", a.emitResult("and.b64", v, "0x7fffffffffffffff"), sign)
}

// log returns the natural logarithm. It separates the exponent. For the remaining factor,
// between √½ and √2, it uses the series of the inverse hyperbolic tangent.
func log(a *asm, t Type, x ...string) string {
	tiny := a.emitResult("setp.lt.f64", x[0], c(0x1p-1022))
	v := a.emitResult("selp.f64", a.emitResult("mul.rn.f64", x[0], c(0x1p54)), x[0], tiny)
	shift := a.emitResult("selp.s64", "-54", "0", tiny)
	e := a.emitResult("add.s64", a.emitResult("sub.s64", a.emitResult("shr.s64", v, "52"), "1023"), shift)
	m := a.emitResult("or.b64", a.emitResult("and.b64", v, "0xfffffffffffff"), "0x3ff0000000000000")
	large := a.emitResult("setp.gt.f64", m, c(math.Sqrt2))
	m = a.emitResult("selp.f64", a.emitResult("mul.rn.f64", m, c(.5)), m, large)
	k := a.emitResult("cvt.rn.f64.s64", a.emitResult("selp.s64", a.emitResult("add.s64", e, "1"), e, large))
	f := a.emitResult("sub.rn.f64", m, c(1))
	s := a.emitResult("div.rn.f64", f, a.emitResult("add.rn.f64", m, c(1)))
	z := a.emitResult("mul.rn.f64", s, s)
	var series []float64
	for i := range 12 {
		series = append(series, 2/float64(2*i+3))
	}
	// log m = 2s + s·z·series = f - s·(f - z·series), since 2s = f - s·f
	tail := a.emitResult("mul.rn.f64", s,
		a.emitResult("sub.rn.f64", f, a.emitResult("mul.rn.f64", z, a.horner(z, series))))
	low := a.emitResult("sub.rn.f64", a.emitResult("mul.rn.f64", k, c(ln2Low)), tail)
	y := a.emitResult("add.rn.f64", a.emitResult("mul.rn.f64", k, c(ln2High)), a.emitResult("add.rn.f64", f, low))
	y = a.emitResult("selp.f64", x[0], y, a.emitResult("setp.equ.f64", x[0], c(math.Inf(1)))) // +Inf or NaN
	y = a.emitResult("selp.f64", c(math.Inf(-1)), y, a.emitResult("setp.eq.f64", x[0], c(0)))
	return a.emitResult("selp.f64", c(math.NaN()), y, a.emitResult("setp.lt.f64", x[0], c(0)))
}

// log1p returns log(1+x). It corrects the rounding error of the sum.
func log1p(a *asm, t Type, x ...string) string {
	u := a.emitResult("add.rn.f64", x[0], c(1))
	lost := a.emitResult("sub.rn.f64", a.emitResult("sub.rn.f64", u, c(1)), x[0])
	y := log(a, t, u)
	correct := a.emitResult("sub.rn.f64", y, a.emitResult("div.rn.f64", lost, u))
	y = a.emitResult("selp.f64", correct, y, a.emitResult("setp.lt.f64", a.emitResult("abs.f64", y), c(math.Inf(1))))
	return a.emitResult("selp.f64", x[0], y, a.emitResult("setp.eq.f64", x[0], c(0))) // including -0
}

// sine returns the operation sin(x + more·π/2). If x is very large, the multiple of π/2 has
// more digits than a float64; a part of it remains then, and the reduction is repeated.
func sine(more int) opFunc {
	return func(a *asm, t Type, x ...string) string {
		rest, quarter := a.emitResult("mov.f64", x[0]), a.emitResult("mov.s64", fmt.Sprint(more))
		again := a.emitResult("setp.eq.u32", "0", "0")
		a.emitWhile(func() string { return again }, func() {
			k := a.emitResult("cvt.rni.f64.f64", a.emitResult("mul.rn.f64", rest, c(2/math.Pi)))
			for _, part := range []float64{rightHigh, rightMiddle, rightLow} {
				a.set(rest, "fma.rn.f64", k, c(-part), rest)
			}
			// larger multiples are divisible by 4
			small := a.emitResult("selp.f64", k, c(0),
				a.emitResult("setp.lt.f64", a.emitResult("abs.f64", k), c(0x1p55)))
			a.set(quarter, "add.s64", quarter, a.emitResult("cvt.rzi.s64.f64", small))
			a.set(again, "setp.gt.f64", a.emitResult("abs.f64", rest), c(1))
		})
		z := a.emitResult("mul.rn.f64", rest, rest)
		s := a.emitResult("mul.rn.f64", rest, a.horner(z, factorials(1, 2, 10)))
		co := a.horner(z, factorials(0, 2, 10))
		bit := func(n string) string { return a.emitResult("setp.ne.s64", a.emitResult("and.b64", quarter, n), "0") }
		y := a.emitResult("selp.f64", co, s, bit("1"))
		return a.emitResult("selp.f64", a.emitResult("neg.f64", y), y, bit("2"))
	}
}

// erf returns the error function. It uses x·p(x²) for |x| < 1. Beyond, it uses a polynomial for
// log(erfc(x)) + x², up to 6, because the difference of erf(6) from 1 is less than the
// precision.
func erf(a *asm, t Type, x ...string) string {
	const near, end = 1, 6
	size := a.emitResult("min.f64", a.emitResult("abs.f64", x[0]), c(end))
	z := a.emitResult("mul.rn.f64", x[0], x[0])
	low := a.emitResult("mul.rn.f64", x[0], a.horner(z, polynomial(14, 0, near, func(z float64) float64 {
		if z < 1e-18 {
			return 2 / math.SqrtPi
		}
		return math.Erf(math.Sqrt(z)) / math.Sqrt(z)
	})))
	// polynomials are more precise for arguments between -1 and 1
	const middle, wide = (end + near) / 2., (end - near) / 2.
	u := a.emitResult("mul.rn.f64", a.emitResult("sub.rn.f64", size, c(middle)), c(1/wide))
	missing := a.horner(u, polynomial(24, -1, 1, func(u float64) float64 {
		x := u*wide + middle
		return math.Log(math.Erfc(x)) + x*x
	}))
	missing = a.emitResult("fma.rn.f64", a.emitResult("neg.f64", size), size, missing)
	high := a.emitResult("sub.rn.f64", c(1), exp(a, t, missing))
	y := a.emitResult("selp.f64", low, a.signOf(x[0], high), a.emitResult("setp.lt.f64", size, c(near)))
	return a.nanOf(x[0], y)
}

// chebyshev returns the first n coefficients of the Chebyshev series of f on [-1, 1].
func chebyshev(n int, f func(float64) float64) []float64 {
	out := make([]float64, n)
	// cosine of i/n of a right angle
	cosine := func(i int) float64 { return math.Cos(math.Pi / float64(2*n) * float64(i%(4*n))) }
	for i := range out {
		for j := range n {
			out[i] += 2 / float64(n) * f(cosine(2*j+1)) * cosine(i*(2*j+1))
		}
	}
	out[0] /= 2
	return out
}

// power returns x[0] to the power of x[1]. It multiplies for small integral exponents, and uses
// exp and log for others.
func power(a *asm, t Type, x ...string) string {
	base, exponent := x[0], x[1]
	whole := a.emitResult("setp.eq.f64", a.emitResult("cvt.rni.f64.f64", exponent), exponent)
	half := a.emitResult("mul.rn.f64", exponent, c(.5))
	odd := a.emitResult("setp.ne.f64", a.emitResult("cvt.rni.f64.f64", half), half) // valid for integral exponents
	y := a.emitResult("mov.f64",
		exp(a, t, a.emitResult("mul.rn.f64", exponent, log(a, t, a.emitResult("abs.f64", base)))))
	a.set(y, "selp.f64", a.signOf(base, y), y, a.emitResult("and.pred", odd, whole)) // and a zero's sign
	a.emitIf(a.emitResult("setp.lt.f64", base, c(0)), func() {
		defined := a.emitResult("or.pred", whole, a.emitResult("setp.eq.f64", base, c(math.Inf(-1))))
		a.set(y, "selp.f64", y, c(math.NaN()), defined)
	})
	a.set(y, "selp.f64", c(1), y, a.emitResult("setp.eq.f64", base, c(1)))
	infinite := a.emitResult("setp.eq.f64", a.emitResult("abs.f64", exponent), c(math.Inf(1)))
	a.set(y, "selp.f64", c(1), y, a.emitResult("and.pred", infinite, a.emitResult("setp.eq.f64", base, c(-1))))
	size := a.emitResult("abs.f64", exponent)
	a.emitIf(a.emitResult("and.pred", whole, a.emitResult("setp.le.f64", size, c(64))), func() {
		n, factor := a.emitResult("cvt.rzi.s64.f64", size), a.emitResult("mov.f64", base)
		a.set(y, "mov.f64", c(1))
		a.emitWhile(func() string { return a.emitResult("setp.ne.s64", n, "0") }, func() {
			set := a.emitResult("setp.ne.s64", a.emitResult("and.b64", n, "1"), "0")
			a.set(y, "selp.f64", a.emitResult("mul.rn.f64", y, factor), y, set)
			a.set(factor, "mul.rn.f64", factor, factor)
			a.set(n, "shr.s64", n, "1")
		})
		a.set(y, "selp.f64", a.emitResult("rcp.rn.f64", y), y, a.emitResult("setp.lt.f64", exponent, c(0)))
	})
	return y
}

// modulo returns the remainder of x/y with the sign of x, as C's fmod does. Each iteration
// subtracts the multiple of y with the leading 53 bits of the quotient. The subtraction is exact
// because the quotient is rounded towards zero. If the quotient overflows, a multiple of y is used
// as the divisor.
func modulo(a *asm, x, y string) string {
	rest, size := a.emitResult("abs.f64", x), a.emitResult("abs.f64", y)
	rest = a.emitResult("selp.f64", c(math.NaN()), rest, a.emitResult("setp.eq.f64", rest, c(math.Inf(1))))
	rest = a.emitResult("selp.f64", c(math.NaN()), rest, a.emitResult("setp.equ.f64", size, c(0)))
	rest = a.emitResult("mov.f64", rest)
	a.emitWhile(func() string { return a.emitResult("setp.ge.f64", rest, size) }, func() {
		by := a.emitResult("mov.f64", size)
		for range 2 { // quotients are below 2²⁰⁹⁸
			tooLarge := a.emitResult("setp.eq.f64", a.emitResult("div.rn.f64", rest, by), c(math.Inf(1)))
			a.set(by, "selp.f64", a.emitResult("mul.rn.f64", by, c(0x1p600)), by, tooLarge)
		}
		q := a.emitResult("cvt.rzi.f64.f64", a.emitResult("div.rz.f64", rest, by))
		a.set(rest, "fma.rn.f64", a.emitResult("neg.f64", q), by, rest)
	})
	return a.signOf(x, rest)
}

func remainder(a *asm, t Type, x ...string) string {
	rest := modulo(a, x[0], x[1])
	return a.emitResult("selp.f64", a.emitResult("add.rn.f64", rest, x[1]), rest, a.needsDecrement(t, rest, x[1]))
}

func floorDivide(a *asm, t Type, x ...string) string {
	rest, quotient := modulo(a, x[0], x[1]), a.emitResult("div.rn.f64", x...)
	q := a.emitResult("div.rn.f64", a.emitResult("sub.rn.f64", x[0], rest), x[1])
	q = a.emitResult("selp.f64", a.emitResult("sub.rn.f64", q, c(1)), q, a.needsDecrement(t, rest, x[1]))
	q = a.emitResult("cvt.rni.f64.f64", q)
	q = a.emitResult("selp.f64", a.signOf(quotient, a.emitResult("mov.f64", c(0))), q,
		a.emitResult("setp.eq.f64", q, c(0)))
	return a.emitResult("selp.f64", quotient, q, a.emitResult("setp.eq.f64", x[1], c(0)))
}

// orderMagnitudes returns the larger and the smaller magnitude of two numbers. A NaN is ignored if
// the other is a number.
func (a *asm) orderMagnitudes(x, y string) (large, small string) {
	x, y = a.emitResult("abs.f64", x), a.emitResult("abs.f64", y)
	return a.emitResult("max.f64", x, y), a.emitResult("min.f64", x, y)
}

// hypot returns √(x²+y²). It divides by the larger magnitude, because its square may overflow.
// If either argument is infinite, the result is infinite, even if the other is NaN.
func hypot(a *asm, t Type, x ...string) string {
	large, small := a.orderMagnitudes(x[0], x[1])
	r := a.emitResult("div.rn.f64", small, large)
	y := a.emitResult("mul.rn.f64", large, a.emitResult("sqrt.rn.f64", a.emitResult("fma.rn.f64", r, r, c(1))))
	y = a.emitResult("selp.f64", c(0), y, a.emitResult("setp.eq.f64", large, c(0)))
	y = a.nanOf(x[0], a.nanOf(x[1], y))
	return a.emitResult("selp.f64", large, y, a.emitResult("setp.eq.f64", large, c(math.Inf(1))))
}

// atan2 takes y and x, and returns the angle of the point (x, y). It computes the arc tangent
// of the smaller magnitude divided by the larger one, relative to π/4 if that is closer, and
// moves the angle to the octant of the point.
func atan2(a *asm, t Type, x ...string) string {
	large, small := a.orderMagnitudes(x[0], x[1])
	r := a.emitResult("div.rn.f64", small, large)
	r = a.emitResult("selp.f64", c(0), r, a.emitResult("setp.eq.f64", large, c(0)))
	r = a.emitResult("selp.f64", c(1), r, a.emitResult("setp.eq.f64", small, c(math.Inf(1))))
	steep := a.emitResult("setp.gt.f64", r, c(math.Sqrt2-1))
	turned := a.emitResult("div.rn.f64", a.emitResult("sub.rn.f64", r, c(1)), a.emitResult("add.rn.f64", r, c(1)))
	v := a.emitResult("selp.f64", turned, r, steep)
	z := a.emitResult("mul.rn.f64", v, v)
	var series []float64
	for i := range 22 {
		series = append(series, math.Pow(-1, float64(i+1))/float64(2*i+3))
	}
	y := a.emitResult("fma.rn.f64", a.emitResult("mul.rn.f64", v, z), a.horner(z, series), v)
	y = a.emitResult("selp.f64", a.emitResult("add.rn.f64", y, c(math.Pi/4)), y, steep)
	high := a.emitResult("setp.gt.f64", a.emitResult("abs.f64", x[0]), a.emitResult("abs.f64", x[1]))
	y = a.emitResult("selp.f64", a.emitResult("sub.rn.f64", c(math.Pi/2), y), y, high)
	y = a.emitResult("selp.f64", a.emitResult("sub.rn.f64", c(math.Pi), y), y, a.emitResult("setp.lt.s64", x[1], "0"))
	return a.nanOf(x[0], a.nanOf(x[1], a.signOf(x[0], y)))
}

// logAddExp returns log(eˣ + eʸ), as the maximum plus log(1 + e^-d) for the difference d. Equal
// arguments, including infinities of the same sign, have a difference of 0.
func logAddExp(a *asm, t Type, x ...string) string {
	apart := a.emitResult("neg.f64", a.emitResult("abs.f64", a.emitResult("sub.rn.f64", x[0], x[1])))
	apart = a.emitResult("selp.f64", c(0), apart, a.emitResult("setp.eq.f64", x[0], x[1]))
	y := a.emitResult("add.rn.f64", a.emitResult("max.f64", x[0], x[1]), log1p(a, t, exp(a, t, apart)))
	return a.nanOf(x[0], a.nanOf(x[1], y))
}
