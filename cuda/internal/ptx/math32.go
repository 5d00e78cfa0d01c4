package ptx

import (
	"fmt"
	"math"
)

// The functions in this file compute in float32, with an error of a few ULPs; t must be Float32.
// They are faster on GPUs with a low float64 throughput.

// inFloat32 maps operations to their functions for Float32, Float16 and BFloat16. They take
// precedence over inFloat64.
var inFloat32 = map[string]opFunc{
	"Exp": exp32, "Sigmoid": sigmoid32, "Tanh": tanh32, "Erf": erf32,
	"Expm1": expm1of32, "Log": log32, "Log1p": log1pOf32, "Sin": sine32(0), "Cos": sine32(1),
	"Rsqrt": func(a *asm, t Type, x ...string) string {
		return a.emitResult("rcp.rn.f32", a.emitResult("sqrt.rn.f32", x[0]))
	},
}

// f formats a float32 constant.
func f(v float64) string { return formatConst(Float32, v) }

// horner32 is [asm.horner] in float32.
func (a *asm) horner32(x string, coefficients []float64) string {
	n := len(coefficients) - 1
	y := a.emitResult("mov.f32", f(coefficients[n]))
	for i := n - 1; i >= 0; i-- {
		y = a.emitResult("fma.rn.f32", y, x, f(coefficients[i]))
	}
	return y
}

func (a *asm) nanOf32(x, v string) string {
	return a.emitResult("selp.f32", x, v, a.emitResult("setp.nan.f32", x, x))
}

// signOf32 returns v with the sign of x.
func (a *asm) signOf32(x, v string) string {
	sign := a.emitResult("and.b32", x, "0x80000000")
	return a.emitResult("or.b32", a.emitResult("and.b32", v, "0x7fffffff"), sign)
}

// exp32 returns eˣ. It computes 2 to the power of x·log₂e, with an instruction that has an
// error of about 2⁻²². It then corrects the rounding error of the product.
func exp32(a *asm, t Type, x ...string) string {
	v := a.emitResult("max.f32", a.emitResult("min.f32", x[0], f(100)), f(-110))
	high := float64(float32(math.Log2E))
	power := a.emitResult("mul.rn.f32", v, f(high))
	lost := a.emitResult("fma.rn.f32", v, f(high), a.emitResult("neg.f32", power))
	lost = a.emitResult("fma.rn.f32", v, f(math.Log2E-high), lost)
	y := a.emitResult("mul.rn.f32", a.emitResult("ex2.approx.f32", power),
		a.emitResult("fma.rn.f32", lost, f(math.Ln2), f(1)))
	return a.nanOf32(x[0], y)
}

// sigmoid32 returns 1/(1+e⁻ˣ). It computes e/(1+e) for e = eˣ if x is negative, which keeps the
// precision of tiny results.
func sigmoid32(a *asm, t Type, x ...string) string {
	e := exp32(a, t, a.emitResult("neg.f32", a.emitResult("abs.f32", x[0])))
	above := a.emitResult("selp.f32", f(1), e, a.emitResult("setp.ge.f32", x[0], f(0)))
	return a.emitResult("div.rn.f32", above, a.emitResult("add.rn.f32", e, f(1)))
}

// tanh32 returns the hyperbolic tangent. It uses x + x³·p(x²) near 0.
func tanh32(a *asm, t Type, x ...string) string {
	const near = .625
	z := a.emitResult("mul.rn.f32", x[0], x[0])
	tail := polynomial(6, 0, near*near, func(z float64) float64 {
		if z < 1e-3 {
			return -1./3 + z*2/15 - z*z*17/315
		}
		return (math.Tanh(math.Sqrt(z))/math.Sqrt(z) - 1) / z
	})
	low := a.emitResult("fma.rn.f32", a.emitResult("mul.rn.f32", z, a.horner32(z, tail)), x[0], x[0])
	size := a.emitResult("min.f32", a.emitResult("abs.f32", x[0]), f(20))
	e := exp32(a, t, a.emitResult("add.rn.f32", size, size))
	high := a.emitResult("sub.rn.f32", f(1), a.emitResult("div.rn.f32", f(2), a.emitResult("add.rn.f32", e, f(1))))
	y := a.emitResult("selp.f32", low, high, a.emitResult("setp.lt.f32", size, f(near)))
	return a.nanOf32(x[0], a.signOf32(x[0], y)) // including a zero's sign
}

// erf32 returns the error function. It uses x·p(x²) for |x| < 1. Beyond, it uses a polynomial
// for log(erfc(x)), up to 4, because the difference of erf(4) from 1 is less than the
// precision.
func erf32(a *asm, t Type, x ...string) string {
	const near, end = 1, 4
	z := a.emitResult("mul.rn.f32", x[0], x[0])
	low := a.emitResult("mul.rn.f32", x[0], a.horner32(z, polynomial(7, 0, near, func(z float64) float64 {
		if z < 1e-9 {
			return 2 / math.SqrtPi
		}
		return math.Erf(math.Sqrt(z)) / math.Sqrt(z)
	})))
	size := a.emitResult("min.f32", a.emitResult("abs.f32", x[0]), f(end))
	// polynomials are more precise for arguments between -1 and 1
	const middle, wide = (end + near) / 2., (end - near) / 2.
	u := a.emitResult("mul.rn.f32", a.emitResult("sub.rn.f32", size, f(middle)), f(1/wide))
	missing := a.horner32(u, polynomial(9, -1, 1, func(u float64) float64 {
		return math.Log(math.Erfc(u*wide + middle))
	}))
	high := a.emitResult("sub.rn.f32", f(1), exp32(a, t, missing))
	y := a.emitResult("selp.f32", low, a.signOf32(x[0], high), a.emitResult("setp.lt.f32", size, f(near)))
	return a.nanOf32(x[0], y)
}

// expm1of32 returns eˣ - 1. It uses x·p(x) for |x| < 1.
func expm1of32(a *asm, t Type, x ...string) string {
	near := a.emitResult("mul.rn.f32", x[0], a.horner32(x[0], polynomial(9, -1, 1, func(x float64) float64 {
		if x == 0 {
			return 1
		}
		return math.Expm1(x) / x
	})))
	far := a.emitResult("sub.rn.f32", exp32(a, t, x[0]), f(1))
	return a.emitResult("selp.f32", near, far, a.emitResult("setp.lt.f32", a.emitResult("abs.f32", x[0]), f(1)))
}

// log32 returns the natural logarithm of any number, by [asm.logOfNormal32]. It scales
// subnormal numbers first.
func log32(a *asm, t Type, x ...string) string {
	tiny := a.emitResult("setp.lt.f32", x[0], f(0x1p-126))
	y := a.logOfNormal32(a.emitResult("selp.f32", a.emitResult("mul.rn.f32", x[0], f(0x1p24)), x[0], tiny))
	y = a.emitResult("selp.f32", a.emitResult("sub.rn.f32", y, f(24*math.Ln2)), y, tiny)
	y = a.emitResult("selp.f32", x[0], y, a.emitResult("setp.equ.f32", x[0], f(math.Inf(1)))) // +Inf or NaN
	y = a.emitResult("selp.f32", f(math.Inf(-1)), y, a.emitResult("setp.eq.f32", x[0], f(0)))
	return a.emitResult("selp.f32", f(math.NaN()), y, a.emitResult("setp.lt.f32", x[0], f(0)))
}

// logOfNormal32 returns the natural logarithm of x, which must be positive and normal. It
// separates the exponent. For the remaining factor, between √½ and √2, it uses a polynomial of
// its difference from 1. Small multiples of the first part of ln 2 are exact.
func (a *asm) logOfNormal32(x string) string {
	const high, low = 0x1.63p-1, math.Ln2 - 0x1.63p-1
	rest := a.emitResult("sub.u32", x, fmt.Sprint(math.Float32bits(math.Sqrt2/2)))
	e := a.emitResult("shr.s32", rest, "23")
	m := a.emitResult("sub.u32", x, a.emitResult("shl.b32", e, "23"))
	k, v := a.emitResult("cvt.rn.f32.s32", e), a.emitResult("sub.rn.f32", m, f(1))
	tail := a.horner32(v, polynomial(9, math.Sqrt2/2-1, math.Sqrt2-1, func(v float64) float64 {
		if math.Abs(v) < 1e-3 {
			return 1./3 - v/4 + v*v/5
		}
		return (math.Log1p(v) - v + v*v/2) / (v * v * v)
	}))
	squares := a.emitResult("mul.rn.f32", v, v)
	y := a.emitResult("fma.rn.f32", a.emitResult("mul.rn.f32", v, squares), tail, a.emitResult("mul.rn.f32", k, f(low)))
	y = a.emitResult("add.rn.f32", v, a.emitResult("fma.rn.f32", squares, f(-.5), y))
	return a.emitResult("fma.rn.f32", k, f(high), y)
}

// log1pOf32 returns log(1+x). It corrects the rounding error of the sum.
func log1pOf32(a *asm, t Type, x ...string) string {
	u := a.emitResult("add.rn.f32", x[0], f(1))
	lost := a.emitResult("sub.rn.f32", a.emitResult("sub.rn.f32", u, f(1)), x[0])
	y := log32(a, t, u)
	correct := a.emitResult("sub.rn.f32", y, a.emitResult("div.rn.f32", lost, u))
	y = a.emitResult("selp.f32", correct, y, a.emitResult("setp.lt.f32", a.emitResult("abs.f32", y), f(math.Inf(1))))
	return a.emitResult("selp.f32", x[0], y, a.emitResult("setp.eq.f32", x[0], f(0))) // including -0
}

// sine32 returns the operation sin(x + more·π/2), in float32 for |x| ≤ 10⁵. It subtracts a
// multiple of π/2 in three parts. Larger arguments are computed in float64.
func sine32(more int) opFunc {
	return func(a *asm, t Type, x ...string) string {
		const far = 1e5
		k := a.emitResult("cvt.rni.f32.f32", a.emitResult("mul.rn.f32", x[0], f(2/math.Pi)))
		rest, left := x[0], math.Pi/2
		for range 3 {
			part := float64(float32(left))
			rest = a.emitResult("fma.rn.f32", k, f(-part), rest)
			left -= part
		}
		quarter := a.emitResult("add.u32", a.emitResult("cvt.rzi.s32.f32", k), fmt.Sprint(more))
		_, s := a.ofQuarters32(rest, quarter)
		y := a.emitResult("mov.f32", s)
		a.emitIf(a.emitResult("setp.gt.f32", a.emitResult("abs.f32", x[0]), f(far)), func() {
			a.set(y, "mov.f32", a.asFloat32(sine(more)(a, Float64, a.emitResult("cvt.f64.f32", x[0]))))
		})
		return y
	}
}

// ofQuarters32 returns the cosine and the sine of quarter·π/2 + rest. quarter is u32, and rest must
// be at most π/4 in magnitude.
func (a *asm) ofQuarters32(rest, quarter string) (co, s string) {
	const half = math.Pi / 4
	z := a.emitResult("mul.rn.f32", rest, rest)
	sines := a.horner32(z, polynomial(4, 0, half*half, func(z float64) float64 {
		if z < 1e-3 {
			return -1./6 + z/120 - z*z/5040
		}
		return (math.Sin(math.Sqrt(z))/math.Sqrt(z) - 1) / z
	}))
	cosines := a.horner32(z, polynomial(4, 0, half*half, func(z float64) float64 {
		if z < 1e-3 {
			return 1./24 - z/720 + z*z/40320
		}
		return (math.Cos(math.Sqrt(z)) - 1 + z/2) / (z * z)
	}))
	s = a.emitResult("fma.rn.f32", a.emitResult("mul.rn.f32", rest, z), sines, rest)
	co = a.emitResult("fma.rn.f32", a.emitResult("mul.rn.f32", z, z), cosines,
		a.emitResult("fma.rn.f32", z, f(-.5), f(1)))
	odd := a.emitResult("setp.ne.u32", a.emitResult("and.b32", quarter, "1"), "0")
	turned := func(v, more string) string { // changes the sign in two of the four quadrants
		at := a.emitResult("add.u32", quarter, more)
		return a.emitResult("xor.b32", v, a.emitResult("shl.b32", a.emitResult("and.b32", at, "2"), "30"))
	}
	return turned(a.emitResult("selp.f32", s, co, odd), "1"), turned(a.emitResult("selp.f32", co, s, odd), "0")
}

// polynomial returns n coefficients, the constant one first, of the polynomial that interpolates f
// on [from, to] at the Chebyshev nodes.
func polynomial(n int, from, to float64, f func(x float64) float64) []float64 {
	middle, half := (from+to)/2, (to-from)/2
	series := chebyshev(n, func(u float64) float64 { return f(middle + half*u) })
	// Chebyshev polynomials of u = (x - middle) / half, by their recurrence.
	before, now := []float64{1}, []float64{-middle / half, 1 / half}
	out := make([]float64, n)
	out[0] = series[0]
	for i := 1; i < n; i++ {
		for k, v := range now {
			out[k] += series[i] * v
		}
		next := make([]float64, len(now)+1)
		for k, v := range now {
			next[k] += 2 * v * -middle / half
			next[k+1] += 2 * v / half
		}
		for k, v := range before {
			next[k] -= v
		}
		before, now = now, next
	}
	return out
}
