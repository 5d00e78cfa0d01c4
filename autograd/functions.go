package autograd

import (
	"math"

	"github.com/shoal-mp/shoal/tensor"
)

// Log1p returns log(1 + x), accurate near zero.
func Log1p(x *Var) *Var {
	return unary("Log1p", x, tensor.Log1p(x.t), x.t,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Div(dy, plus(x.t, 1)) }).
		twice(func(y, dy *Var) []*Var { return of(Div(dy, AddScalar(y.inputs[0], 1))) })
}

// Expm1 returns e^x - 1, accurate near zero.
func Expm1(x *Var) *Var {
	y := tensor.Expm1(x.t)
	return unary("Expm1", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { return plus(y, 1).Mul(dy) }).
		twice(func(y, dy *Var) []*Var { return of(Mul(dy, AddScalar(y, 1))) })
}

// Rsqrt returns 1 / √x.
func Rsqrt(x *Var) *Var {
	y := tensor.Rsqrt(x.t)
	return unary("Rsqrt", x, y, y,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Pow(y, 3).MulScalar(-0.5).Mul(dy) }).
		twice(func(y, dy *Var) []*Var { return of(Mul(dy, MulScalar(Pow(y, 3), -0.5))) })
}

// Reciprocal returns 1 / x.
func Reciprocal(x *Var) *Var {
	y := tensor.Reciprocal(x.t)
	return unary("Reciprocal", x, y, y,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Mul(y, y).Neg().Mul(dy) }).
		twice(func(y, dy *Var) []*Var { return of(Mul(dy, Neg(Mul(y, y)))) })
}

// Sin returns the sines.
func Sin(x *Var) *Var {
	return unary("Sin", x, tensor.Sin(x.t), x.t,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Cos(x.t).Mul(dy) }).
		twice(func(y, dy *Var) []*Var { return of(Mul(dy, Cos(y.inputs[0]))) })
}

// Cos returns the cosines.
func Cos(x *Var) *Var {
	return unary("Cos", x, tensor.Cos(x.t), x.t,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Sin(x.t).Neg().Mul(dy) }).
		twice(func(y, dy *Var) []*Var { return of(Mul(dy, Neg(Sin(y.inputs[0])))) })
}

// Erf returns the error function.
func Erf(x *Var) *Var {
	return unary("Erf", x, tensor.Erf(x.t), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Mul(x.t, x.t).Neg().Exp().MulScalar(2 / math.Sqrt(math.Pi)).Mul(dy)
	}).twice(func(y, dy *Var) []*Var {
		x := y.inputs[0]
		return of(Mul(dy, MulScalar(Exp(Neg(Mul(x, x))), 2/math.Sqrt(math.Pi))))
	})
}

// Hypot returns √(a² + b²).
func Hypot(a, b *Var) *Var {
	return ruled("Hypot", tensor.Hypot(a.t, b.t), func(y, dy *Var) []*Var {
		return of(Mul(dy, Div(y.inputs[0], y)), Mul(dy, Div(y.inputs[1], y)))
	}, a, b)
}

// Atan2 returns the angles of the points (b, a), from -π to π.
func Atan2(a, b *Var) *Var {
	return ruled("Atan2", tensor.Atan2(a.t, b.t), func(y, dy *Var) []*Var {
		a, b := y.inputs[0], y.inputs[1]
		part := Mul(dy, Reciprocal(Add(Mul(a, a), Mul(b, b))))
		return of(Mul(part, b), Neg(Mul(part, a)))
	}, a, b)
}

// Logaddexp returns log(e^a + e^b).
func Logaddexp(a, b *Var) *Var {
	return ruled("Logaddexp", tensor.Logaddexp(a.t, b.t), func(y, dy *Var) []*Var {
		d := Sub(y.inputs[0], y.inputs[1])
		return of(Mul(dy, Sigmoid(d)), Mul(dy, Sigmoid(Neg(d))))
	}, a, b)
}

// LeakyReLU returns x where x is positive, and slope · x elsewhere.
func LeakyReLU(x *Var, slope float64) *Var {
	positive := tensor.Gt(x.t, x.t.Number(0))
	leak := func(t *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(positive, t, tensor.Mul(t, t.Number(slope)))
	}
	return unary("LeakyReLU", x, leak(x.t), nil, leak).
		twice(func(_, dy *Var) []*Var { return of(Where(positive, dy, MulScalar(dy, slope))) })
}

// plus returns t + c.
func plus(t *tensor.Tensor, c float64) *tensor.Tensor { return tensor.Add(t, t.Number(c)) }
