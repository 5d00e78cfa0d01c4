package autograd

import (
	"github.com/shoal-mp/shoal/tensor"
)

// ELU returns x where x is positive, and alpha · (e^x - 1) elsewhere (Clevert and others, 2015).
func ELU(x *Var, alpha float64) *Var { return elu("ELU", x, alpha, 1, 1) }

// SELU returns ELU with a fixed alpha, times a fixed scale, by which activations keep mean 0 and
// variance 1 (Klambauer and others, 2017).
func SELU(x *Var) *Var {
	return elu("SELU", x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)
}

// CELU returns x where x is positive, and alpha · (e^(x/alpha) - 1) elsewhere (Barron, 2017).
func CELU(x *Var, alpha float64) *Var {
	if alpha == 0 {
		misuse("CELU with alpha 0")
	}
	return elu("CELU", x, alpha, 1, 1/alpha)
}

// elu returns scale · x where x is positive, and scale · alpha · (e^(inner·x) - 1) elsewhere.
func elu(op string, x *Var, alpha, scale, inner float64) *Var {
	below := tensor.Le(x.t, x.t.Number(0)) // not NaN
	part := tensor.Minimum(x.t, x.t.Number(0)).MulScalar(inner)
	y := tensor.Where(below, tensor.Expm1(part).MulScalar(scale*alpha), tensor.Mul(x.t, x.t.Number(scale)))
	return unary(op, x, y, x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		slope := tensor.Exp(part).MulScalar(scale * alpha * inner)
		return tensor.Where(tensor.Gt(x.t, x.t.Number(0)), slope.Number(scale), slope).Mul(dy)
	}).twice(func(_, dy *Var) []*Var {
		slope := MulScalar(Exp(MulScalar(Where(below, x, x.like(0)), inner)), scale*alpha*inner)
		return of(Where(tensor.Gt(x.t, x.t.Number(0)), MulScalar(dy, scale), Mul(slope, dy)))
	})
}

// Softplus returns log(1 + e^(beta·x)) / beta, and x where beta·x is above threshold, where the two
// hardly differ. PyTorch's defaults are 1 and 20.
func Softplus(x *Var, beta, threshold float64) *Var {
	if beta == 0 {
		misuse("Softplus with beta 0")
	}
	inner := tensor.Mul(x.t, x.t.Number(beta))
	above := tensor.Gt(inner, inner.Number(threshold))
	y := tensor.Where(above, x.t, tensor.Log1p(tensor.Exp(inner)).MulScalar(1/beta))
	return unary("Softplus", x, y, x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(above, dy, tensor.Sigmoid(inner).Mul(dy))
	}).twice(func(_, dy *Var) []*Var { return of(Where(above, dy, Mul(dy, Sigmoid(MulScalar(x, beta))))) })
}

// LogSigmoid returns the logarithm of the sigmoid of x, accurate also where the sigmoid is almost
// 0.
func LogSigmoid(x *Var) *Var {
	y := tensor.Minimum(x.t, x.t.Number(0)).Sub(tensor.Log1p(tensor.Abs(x.t).Neg().Exp()))
	return unary("LogSigmoid", x, y, x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Sigmoid(tensor.Neg(x.t)).Mul(dy)
	}).twice(func(_, dy *Var) []*Var { return of(Mul(dy, Sigmoid(Neg(x)))) })
}

// Softsign returns x / (1 + |x|).
func Softsign(x *Var) *Var { return Div(x, AddScalar(Abs(x), 1)) }

// Mish returns x · tanh(log(1 + e^x)) (Misra, 2019).
func Mish(x *Var) *Var {
	inner := tensor.Tanh(tensor.Log1p(tensor.Exp(x.t)))
	return unary("Mish", x, tensor.Mul(x.t, inner), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		slope := tensor.Mul(inner, inner).Neg().AddScalar(1).Mul(tensor.Sigmoid(x.t)).Mul(x.t)
		return slope.Add(inner).Mul(dy)
	}).twice(func(_, dy *Var) []*Var {
		inner := Tanh(Softplus(x, 1, 20))
		slope := Mul(Mul(AddScalar(Neg(Mul(inner, inner)), 1), Sigmoid(x)), x)
		return of(Mul(dy, Add(slope, inner)))
	})
}

// Hardtanh returns x with elements below lo set to lo and those above hi set to hi. Only elements
// strictly between lo and hi get a gradient.
func Hardtanh(x *Var, lo, hi float64) *Var {
	if !(lo < hi) {
		misuse("Hardtanh between %v and %v: the first is less", lo, hi)
	}
	return hardTanh("Hardtanh", x, lo, hi)
}

// ReLU6 returns x clamped to 0 and 6.
func ReLU6(x *Var) *Var { return hardTanh("ReLU6", x, 0, 6) }

func hardTanh(op string, x *Var, lo, hi float64) *Var {
	return unary(op, x, tensor.Clamp(x.t, lo, hi), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(between(x.t, lo, hi), dy, dy.Number(0))
	}).twice(func(_, dy *Var) []*Var { return of(Where(between(x.t, lo, hi), dy, dy.like(0))) })
}

// Hardsigmoid returns x/6 + 1/2, clamped to 0 and 1.
func Hardsigmoid(x *Var) *Var {
	y := tensor.Clamp(plus(x.t, 3), 0, 6).MulScalar(1.0 / 6)
	return unary("Hardsigmoid", x, y, x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(between(x.t, -3, 3), tensor.Mul(dy, dy.Number(1.0/6)), dy.Number(0))
	}).twice(func(_, dy *Var) []*Var { return of(Where(between(x.t, -3, 3), MulScalar(dy, 1.0/6), dy.like(0))) })
}

// Hardswish returns x · Hardsigmoid(x).
func Hardswish(x *Var) *Var {
	y := tensor.Clamp(plus(x.t, 3), 0, 6).MulScalar(1.0 / 6).Mul(x.t)
	return unary("Hardswish", x, y, x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		slope := tensor.Mul(x.t, x.t.Number(1.0/3)).AddScalar(0.5)
		inner := tensor.Where(tensor.Ge(x.t, x.t.Number(3)), slope.Number(1), slope)
		return tensor.Where(tensor.Le(x.t, x.t.Number(-3)), dy.Number(0), inner.Mul(dy))
	}).twice(func(_, dy *Var) []*Var {
		inner := Where(tensor.Ge(x.t, x.t.Number(3)), dy, Mul(dy, AddScalar(MulScalar(x, 1.0/3), 0.5)))
		return of(Where(tensor.Le(x.t, x.t.Number(-3)), dy.like(0), inner))
	})
}

// Softshrink returns 0 where |x| <= lambda, and x moved towards 0 by lambda elsewhere.
func Softshrink(x *Var, lambda float64) *Var {
	checkLambda("Softshrink", lambda)
	y := tensor.Sub(x.t, tensor.Clamp(x.t, -lambda, lambda))
	return shrink("Softshrink", x, tensor.Where(near(x, lambda), y.Number(0), y), lambda)
}

// Hardshrink returns 0 where |x| <= lambda, and x elsewhere.
func Hardshrink(x *Var, lambda float64) *Var {
	return shrink("Hardshrink", x, tensor.Where(near(x, lambda), x.t.Number(0), x.t), lambda)
}

func shrink(op string, x *Var, y *tensor.Tensor, lambda float64) *Var {
	return unary(op, x, y, x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(beyond(x, lambda), dy, dy.Number(0))
	}).twice(func(_, dy *Var) []*Var { return of(Where(beyond(x, lambda), dy, dy.like(0))) })
}

// beyond says where x is farther from 0 than lambda.
func beyond(x *Var, lambda float64) *tensor.Tensor {
	return tensor.Or(tensor.Gt(x.t, x.t.Number(lambda)), tensor.Lt(x.t, x.t.Number(-lambda)))
}

// near says where x is no farther from 0 than lambda.
func near(x *Var, lambda float64) *tensor.Tensor {
	return tensor.And(tensor.Ge(x.t, x.t.Number(-lambda)), tensor.Le(x.t, x.t.Number(lambda)))
}

func checkLambda(op string, lambda float64) {
	if !(lambda >= 0) {
		misuse("%s with lambda %v: it is at least 0", op, lambda)
	}
}

// Tanhshrink returns x - tanh(x).
func Tanhshrink(x *Var) *Var { return Sub(x, Tanh(x)) }

// Threshold returns x where x is above threshold, and value elsewhere.
func Threshold(x *Var, threshold, value float64) *Var {
	below := tensor.Le(x.t, x.t.Number(threshold))
	return unary("Threshold", x, tensor.Where(below, x.t.Number(value), x.t), x.t,
		func(dy *tensor.Tensor) *tensor.Tensor {
			return tensor.Where(below, dy.Number(0), dy)
		}).twice(func(_, dy *Var) []*Var { return of(Where(below, dy.like(0), dy)) })
}

// PReLU returns x, (N, C, ...), where x is positive, and w · x elsewhere (He and others, 2015). w
// has one element, or one for each channel.
func PReLU(x, w *Var) *Var {
	shape := []int{1}
	if n := w.t.Numel(); w.t.Dims() != 1 || n != 1 && (x.t.Dims() < 2 || x.t.Dim(1) != n) {
		misuse("PReLU of shape %v with a weight of %v: it is (1), or has an element for each channel",
			x.Shape(), w.Shape())
	} else if n != 1 {
		shape = channelShape(x)
	}
	slope := w.t.Reshape(shape...)
	above := tensor.Gt(x.t, x.t.Number(0))
	v := wrap("PReLU", tensor.Where(above, x.t, tensor.Mul(x.t, slope)), x, w)
	if v.needs {
		v.save(x.t, w.t)
		v.backward = func(dy *tensor.Tensor) {
			x.add(tensor.Where(above, dy, tensor.Mul(dy, slope)))
			if w.wanted() {
				dw := tensor.Where(above, dy.Number(0), tensor.Mul(dy, x.t))
				w.add(reduceTo(dw, shape).Reshape(w.Shape()...))
			}
		}
	}
	return v.twice(func(_, dy *Var) []*Var {
		dx := Where(above, dy, Mul(dy, Reshape(w, shape...)))
		dw := Where(above, dy.like(0), Mul(dy, x))
		return of(dx, Reshape(summed(dw, shape), w.Shape()...))
	})
}

// GLU returns the first half of x along dim, times the sigmoid of the second half.
func GLU(x *Var, dim int) *Var {
	if x.t.Dims() == 0 || x.t.Dim(dim)%2 != 0 {
		misuse("GLU of shape %v along dimension %d: its size is even", x.Shape(), dim)
	}
	half := x.t.Dim(dim) / 2
	return Mul(Narrow(x, dim, 0, half), Sigmoid(Narrow(x, dim, half, half)))
}
