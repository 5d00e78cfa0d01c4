package autograd

import (
	"math"

	"github.com/shoal-mp/shoal/tensor"
)

// Log1p returns log(1 + x), accurate near zero.
func Log1p(x *Var) *Var {
	return wrapOwned("Log1p", tensor.Log1p(x.t), x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Div(dy, AddScalar(y.inputs[0], 1))) })
}

// Expm1 returns e^x - 1, accurate near zero.
func Expm1(x *Var) *Var {
	y := wrapOwned("Expm1", tensor.Expm1(x.t), x)
	return y.saveIfNeeded(y.t).setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, AddScalar(y, 1))) })
}

// Rsqrt returns 1 / √x.
func Rsqrt(x *Var) *Var {
	y := wrapOwned("Rsqrt", tensor.Rsqrt(x.t), x)
	return y.saveIfNeeded(y.t).setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Mul(dy,
			MulScalar(Pow(y, 3), -0.5)))
	})
}

// Reciprocal returns 1 / x.
func Reciprocal(x *Var) *Var {
	y := wrapOwned("Reciprocal", tensor.Reciprocal(x.t), x)
	return y.saveIfNeeded(y.t).setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, Neg(Mul(y, y)))) })
}

// Sin returns the sine.
func Sin(x *Var) *Var {
	return wrapOwned("Sin", tensor.Sin(x.t), x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, Cos(y.inputs[0]))) })
}

// Cos returns the cosine.
func Cos(x *Var) *Var {
	return wrapOwned("Cos", tensor.Cos(x.t), x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, Neg(Sin(y.inputs[0])))) })
}

// Erf returns the error function.
func Erf(x *Var) *Var {
	return wrapOwned("Erf", tensor.Erf(x.t), x).saveIfNeeded(x.t).setRule(func(y, dy *Var) derivatives {
		x := y.inputs[0]
		return derivativesOf(Mul(dy, MulScalar(Exp(Neg(Mul(x, x))), 2/math.Sqrt(math.Pi))))
	})
}

// Hypot returns √(a² + b²).
func Hypot(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Hypot", tensor.Hypot(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).
		setRule(func(y, dy *Var) derivatives {
			return derivativesOf(Mul(dy, Div(y.inputs[0], y)), Mul(dy, Div(y.inputs[1], y)))
		})
}

// Atan2 returns the angles of the points (b, a), from -π to π. The gradient at (0, 0) is zero.
func Atan2(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Atan2", tensor.Atan2(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).
		setRule(func(y, dy *Var) derivatives {
			a, b := y.inputs[0], y.inputs[1]
			squares := Add(Mul(a, a), Mul(b, b))
			none := dy.ownTensor(applyNumber(tensor.Eq, squares.t, 0))
			part := Where(none, dy.constLike(0), Div(dy, Where(none, dy.constLike(1), squares)))
			return derivativesOf(Mul(part, b), Neg(Mul(part, a)))
		})
}

// Logaddexp returns log(e^a + e^b).
func Logaddexp(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Logaddexp", tensor.Logaddexp(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).
		setRule(func(y, dy *Var) derivatives {
			d := Sub(y.inputs[0], y.inputs[1])
			return derivativesOf(Mul(dy, Sigmoid(d)), Mul(dy, Sigmoid(Neg(d))))
		})
}

// LeakyReLU returns x where x is positive, and slope · x elsewhere.
func LeakyReLU(x *Var, slope float64) *Var {
	positive := x.ownTensor(applyNumber(tensor.Gt, x.t, 0))
	below := x.ownTensor(applyNumber(tensor.Mul, x.t, slope))
	y := wrapOwned("LeakyReLU", tensor.Where(positive, x.t, below), x).saveIfNeeded(positive)
	y.note.factor = slope
	return y.setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Where(y.saved[0].t, dy, MulScalar(dy, y.note.factor)))
	})
}
