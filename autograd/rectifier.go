package autograd

import (
	"github.com/shoal-mp/shoal/tensor"
)

// ELU returns x where x is positive, and alpha · (e^x - 1) elsewhere (Clevert et al., 2015).
func ELU(x *Var, alpha float64) *Var { return elu("ELU", x, alpha, 1, 1) }

// SELU returns [ELU] with a fixed alpha, times a fixed scale, chosen so that activations keep mean
// 0 and variance 1 (Klambauer et al., 2017).
func SELU(x *Var) *Var {
	return elu("SELU", x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)
}

// CELU returns x where x is positive, and alpha · (e^(x/alpha) - 1) elsewhere (Barron, 2017). alpha
// must not be 0.
func CELU(x *Var, alpha float64) *Var {
	if alpha == 0 {
		misuse(tensor.ErrArgument, "CELU: got alpha 0, want another value")
	}
	return elu("CELU", x, alpha, 1, 1/alpha)
}

// elu returns scale · x where x is positive, and scale · alpha · (e^(inner·x) - 1) elsewhere.
func elu(op string, x *Var, alpha, scale, inner float64) *Var {
	below := x.ownTensor(applyNumber(tensor.Le, x.t, 0)) // false for NaN
	part := x.ownTensor(applyNumber(tensor.Minimum, x.t, 0)).MulScalarInPlace(inner)
	bent := x.ownTensor(tensor.Expm1(part)).MulScalarInPlace(scale * alpha)
	y := wrapOwned(op, tensor.Where(below, bent, x.ownTensor(applyNumber(tensor.Mul, x.t, scale))), x).saveIfNeeded(x.t)
	y.note.factor, y.note.limits = alpha, [2]float64{scale, inner}
	return y.setRule(func(y, dy *Var) derivatives {
		x, alpha, scale, inner := y.inputs[0], y.note.factor, y.note.limits[0], y.note.limits[1]
		below := Where(dy.ownTensor(applyNumber(tensor.Le, x.t, 0)), x, dy.constLike(0))
		slope := MulScalar(Exp(MulScalar(below, inner)), scale*alpha*inner)
		return derivativesOf(Where(dy.ownTensor(applyNumber(tensor.Gt, x.t, 0)), MulScalar(dy, scale), Mul(slope, dy)))
	})
}

// Softplus returns log(1 + e^(beta·x)) / beta, or x where beta·x is above threshold, where both are
// almost equal. beta must not be 0. PyTorch's defaults are 1 and 20.
func Softplus(x *Var, beta, threshold float64) *Var {
	if beta == 0 {
		misuse(tensor.ErrArgument, "Softplus: got beta 0, want another value")
	}
	inner := x.ownTensor(applyNumber(tensor.Mul, x.t, beta))
	above := x.ownTensor(applyNumber(tensor.Gt, inner, threshold))
	soft := x.ownTensor(tensor.Log1p(inner.ExpInPlace())).MulScalarInPlace(1 / beta)
	y := wrapOwned("Softplus", tensor.Where(above, x.t, soft), x).saveIfNeeded(x.t, above)
	y.note.factor = beta
	return y.setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Where(y.saved[1].t, dy, Mul(dy, Sigmoid(MulScalar(y.inputs[0], y.note.factor)))))
	})
}

// LogSigmoid returns the logarithm of the sigmoid of x. It is accurate even if the sigmoid is
// almost 0.
func LogSigmoid(x *Var) *Var {
	rest := x.ownTensor(tensor.Log1p(x.ownTensor(tensor.Abs(x.t)).NegInPlace().ExpInPlace()))
	return wrapOwned("LogSigmoid", applyNumber(tensor.Minimum, x.t, 0).SubInPlace(rest), x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, Sigmoid(Neg(y.inputs[0])))) })
}

// Softsign returns x / (1 + |x|).
func Softsign(x *Var) *Var { return Div(x, AddScalar(Abs(x), 1)) }

// Mish returns x · tanh(log(1 + e^x)) (Misra, 2019).
func Mish(x *Var) *Var {
	inner := x.ownTensor(tensor.Log1p(x.ownTensor(tensor.Exp(x.t)))).TanhInPlace()
	return wrapOwned("Mish", tensor.Mul(x.t, inner), x).saveIfNeeded(x.t).setRule(func(y, dy *Var) derivatives {
		x := y.inputs[0]
		inner := Tanh(Softplus(x, 1, 20))
		slope := Mul(Mul(AddScalar(Neg(Mul(inner, inner)), 1), Sigmoid(x)), x)
		return derivativesOf(Mul(dy, Add(slope, inner)))
	})
}

// Hardtanh returns the elements of x limited to the range from lo to hi. lo must be less than hi.
// Only elements strictly between lo and hi get a gradient.
func Hardtanh(x *Var, lo, hi float64) *Var {
	if !(lo < hi) {
		misuse(tensor.ErrArgument, "Hardtanh: got bounds %v and %v, want the first less than the second", lo, hi)
	}
	return clamp("Hardtanh", x, lo, hi)
}

// ReLU6 returns x limited to the range from 0 to 6.
func ReLU6(x *Var) *Var { return clamp("ReLU6", x, 0, 6) }

// Hardsigmoid returns x/6 + 1/2, limited to the range from 0 to 1.
func Hardsigmoid(x *Var) *Var {
	return wrapOwned("Hardsigmoid", addNumber(x.t, 3).ClampInPlace(0, 6).MulScalarInPlace(1.0/6), x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives {
			inside := maskBetween(dy, y.inputs[0].t, [2]float64{-3, 3})
			return derivativesOf(Where(inside, MulScalar(dy, 1.0/6), dy.constLike(0)))
		})
}

// Hardswish returns x · Hardsigmoid(x).
func Hardswish(x *Var) *Var {
	y := addNumber(x.t, 3).ClampInPlace(0, 6).MulScalarInPlace(1.0 / 6).MulInPlace(x.t)
	return wrapOwned("Hardswish", y, x).saveIfNeeded(x.t).setRule(func(y, dy *Var) derivatives {
		x := y.inputs[0]
		above, below := dy.ownTensor(applyNumber(tensor.Ge, x.t, 3)), dy.ownTensor(applyNumber(tensor.Le, x.t, -3))
		inner := Where(above, dy, Mul(dy, AddScalar(MulScalar(x, 1.0/3), 0.5)))
		return derivativesOf(Where(below, dy.constLike(0), inner))
	})
}

// Softshrink returns 0 where |x| <= lambda, and x moved towards 0 by lambda elsewhere. lambda must
// not be negative.
func Softshrink(x *Var, lambda float64) *Var {
	if !(lambda >= 0) {
		misuse(tensor.ErrArgument, "Softshrink: got lambda %v, want at least 0", lambda)
	}
	rest := x.ownTensor(tensor.Sub(x.t, x.ownTensor(tensor.Clamp(x.t, -lambda, lambda))))
	return shrink("Softshrink", x, rest, lambda)
}

// Hardshrink returns 0 where |x| <= lambda, and x elsewhere.
func Hardshrink(x *Var, lambda float64) *Var { return shrink("Hardshrink", x, x.t, lambda) }

// shrink returns 0 where |x| <= lambda, and rest elsewhere.
func shrink(op string, x *Var, rest *tensor.Tensor, lambda float64) *Var {
	above, below := x.ownTensor(applyNumber(tensor.Ge, x.t, -lambda)), x.ownTensor(applyNumber(tensor.Le, x.t, lambda))
	near := x.ownTensor(tensor.And(above, below))
	y := wrapOwned(op, tensor.Where(near, x.ownTensor(rest.Number(0)), rest), x).saveIfNeeded(x.t)
	y.note.factor = lambda
	return y.setRule(func(y, dy *Var) derivatives {
		x, lambda := y.inputs[0].t, y.note.factor
		above, below := dy.ownTensor(applyNumber(tensor.Gt, x, lambda)),
			dy.ownTensor(applyNumber(tensor.Lt, x, -lambda))
		return derivativesOf(Where(dy.ownTensor(tensor.Or(above, below)), dy, dy.constLike(0)))
	})
}

// Tanhshrink returns x - tanh(x).
func Tanhshrink(x *Var) *Var { return Sub(x, Tanh(x)) }

// Threshold returns x where x is above threshold, and value elsewhere.
func Threshold(x *Var, threshold, value float64) *Var {
	below := x.ownTensor(applyNumber(tensor.Le, x.t, threshold))
	return wrapOwned("Threshold", tensor.Where(below, x.ownTensor(x.t.Number(value)), x.t), x).saveIfNeeded(below).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Where(y.saved[0].t, dy.constLike(0), dy)) })
}

// PReLU returns x, (N, C, ...), where x is positive, and w · x elsewhere (He et al., 2015). w must
// have one element, or one for each channel.
func PReLU(x, w *Var) *Var {
	n := w.t.Numel()
	if w.t.Dims() != 1 || n != 1 && (x.t.Dims() < 2 || x.t.Dim(1) != n) {
		misuse(tensor.ErrShape, "PReLU of shape %v: got weight shape %v, want (1), or an element for each channel",
			x.Shape(), w.Shape())
	}
	var room [2 * maxDims]int
	slope := Reshape(x.scope.NoGrad(w.t), slopeShape(room[:0], x, w)...).t
	above := x.ownTensor(applyNumber(tensor.Gt, x.t, 0))
	v := wrapOwned("PReLU", tensor.Where(above, x.t, x.ownTensor(tensor.Mul(x.t, slope))), x, w)
	return v.saveIfNeeded(x.t, w.t, above).setRule(func(y, dy *Var) (d derivatives) {
		var room [2 * maxDims]int
		x, w, above := y.inputs[0], y.inputs[1], y.saved[2].t
		shape := slopeShape(room[:0], x, w)
		if x.needsGradient() {
			d.few[0] = Where(above, dy, Mul(dy, Reshape(w, shape...)))
		}
		if w.needsGradient() {
			d.few[1] = Reshape(sumTo(Where(above, dy.constLike(0), Mul(dy, x)), shape), w.Shape()...)
		}
		return d
	})
}

// slopeShape returns the shape of a PReLU weight that broadcasts to x. It uses room.
func slopeShape(room []int, x, w *Var) []int {
	if w.t.Numel() == 1 {
		return append(room, 1)
	}
	return channelShape(room, x)
}

// GLU returns the first half of x along dim, times the sigmoid of the second half. The size of dim
// must be even.
func GLU(x *Var, dim int) *Var {
	if x.t.Dims() == 0 || x.t.Dim(dim)%2 != 0 {
		misuse(tensor.ErrShape, "GLU: got shape %v, want an even size in dimension %d", x.Shape(), dim)
	}
	half := x.t.Dim(dim) / 2
	return Mul(Narrow(x, dim, 0, half), Sigmoid(Narrow(x, dim, half, half)))
}
