package ptx

import "math"

// The functions here compute in float32, t is always that: within some units in the last place, and
// at the speed of a GPU that has little float64.

// inFloat32 are the functions that Float32, Float16 and BFloat16 have in the place of those of
// inFloat64.
var inFloat32 = map[string]opFunc{
	"Exp": exp32, "Sigmoid": sigmoid32, "Tanh": tanh32, "Erf": erf32,
}

// f is a constant of float32.
func f(v float64) string { return number(Float32, v) }

// horner32 is horner in float32.
func (a *asm) horner32(x string, coefficients []float64) string {
	n := len(coefficients) - 1
	y := a.do("mov.f32", f(coefficients[n]))
	for i := n - 1; i >= 0; i-- {
		y = a.do("fma.rn.f32", y, x, f(coefficients[i]))
	}
	return y
}

func (a *asm) nanOf32(x, v string) string { return a.do("selp.f32", x, v, a.do("setp.nan.f32", x, x)) }

// signOf32 gives v the sign of x.
func (a *asm) signOf32(x, v string) string {
	sign := a.do("and.b32", x, "0x80000000")
	return a.do("or.b32", a.do("and.b32", v, "0x7fffffff"), sign)
}

// exp32 raises 2 to the product with log₂e, by an instruction that is exact within some 2⁻²². What
// rounding took from the product, it multiplies afterwards.
func exp32(a *asm, t Type, x ...string) string {
	v := a.do("max.f32", a.do("min.f32", x[0], f(100)), f(-110))
	high := float64(float32(math.Log2E))
	power := a.do("mul.rn.f32", v, f(high))
	lost := a.do("fma.rn.f32", v, f(high), a.do("neg.f32", power))
	lost = a.do("fma.rn.f32", v, f(math.Log2E-high), lost)
	y := a.do("mul.rn.f32", a.do("ex2.approx.f32", power), a.do("fma.rn.f32", lost, f(math.Ln2), f(1)))
	return a.nanOf32(x[0], y)
}

// sigmoid32 is e/(1+e) where x is less than 0: there what is very small is not lost.
func sigmoid32(a *asm, t Type, x ...string) string {
	e := exp32(a, t, a.do("neg.f32", a.do("abs.f32", x[0])))
	above := a.do("selp.f32", f(1), e, a.do("setp.ge.f32", x[0], f(0)))
	return a.do("div.rn.f32", above, a.do("add.rn.f32", e, f(1)))
}

// tanh32 is x and a polynomial times x³ near 0.
func tanh32(a *asm, t Type, x ...string) string {
	const near = .625
	z := a.do("mul.rn.f32", x[0], x[0])
	tail := polynomial(6, 0, near*near, func(z float64) float64 {
		if z < 1e-3 {
			return -1./3 + z*2/15 - z*z*17/315
		}
		return (math.Tanh(math.Sqrt(z))/math.Sqrt(z) - 1) / z
	})
	low := a.do("fma.rn.f32", a.do("mul.rn.f32", z, a.horner32(z, tail)), x[0], x[0])
	size := a.do("min.f32", a.do("abs.f32", x[0]), f(20))
	e := exp32(a, t, a.do("add.rn.f32", size, size))
	high := a.do("sub.rn.f32", f(1), a.do("div.rn.f32", f(2), a.do("add.rn.f32", e, f(1))))
	y := a.do("selp.f32", low, high, a.do("setp.lt.f32", size, f(near)))
	return a.nanOf32(x[0], a.signOf32(x[0], y)) // that of a zero as well
}

// erf32 is a polynomial of x² times x up to 1. Beyond, the logarithm of what is missing to 1 is
// one, up to where that is nothing.
func erf32(a *asm, t Type, x ...string) string {
	const near, end = 1, 4
	z := a.do("mul.rn.f32", x[0], x[0])
	low := a.do("mul.rn.f32", x[0], a.horner32(z, polynomial(7, 0, near, func(z float64) float64 {
		if z < 1e-9 {
			return 2 / math.SqrtPi
		}
		return math.Erf(math.Sqrt(z)) / math.Sqrt(z)
	})))
	size := a.do("min.f32", a.do("abs.f32", x[0]), f(end))
	// polynomials are more exact of numbers between -1 and 1
	const middle, wide = (end + near) / 2., (end - near) / 2.
	u := a.do("mul.rn.f32", a.do("sub.rn.f32", size, f(middle)), f(1/wide))
	missing := a.horner32(u, polynomial(9, -1, 1, func(u float64) float64 {
		return math.Log(math.Erfc(u*wide + middle))
	}))
	high := a.do("sub.rn.f32", f(1), exp32(a, t, missing))
	y := a.do("selp.f32", low, a.signOf32(x[0], high), a.do("setp.lt.f32", size, f(near)))
	return a.nanOf32(x[0], y)
}

// polynomial returns n coefficients of one that is near to f between from and to, the constant one
// first: the series by which f is interpolated where Chebyshev's polynomial is 0.
func polynomial(n int, from, to float64, f func(x float64) float64) []float64 {
	middle, half := (from+to)/2, (to-from)/2
	series := chebyshev(n, func(u float64) float64 { return f(middle + half*u) })
	// The polynomials of u = (x - middle) / half, by their recurrence.
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
