package autograd

import "github.com/shoal-mp/shoal/tensor"

// Add returns a + b. All elementwise operations of two values broadcast their shapes and promote
// their dtypes as PyTorch does: each gradient has the dtype of its value. The operands of matrix
// products, layers and norms must have the same dtype, as in PyTorch.
func Add(a, b *Var) *Var {
	a, b = promoted(a, b)
	return made("Add", tensor.Add(a.t, b.t), a, b).
		twice(func(_, dy *Var) derivatives { return of(dy, dy) })
}

// Sub returns a - b.
func Sub(a, b *Var) *Var {
	a, b = promoted(a, b)
	return made("Sub", tensor.Sub(a.t, b.t), a, b).twice(func(y, dy *Var) (d derivatives) {
		if d = of(dy); y.inputs[1].wanted() {
			d.few[1] = Neg(dy)
		}
		return d
	})
}

// Mul returns a · b, elementwise.
func Mul(a, b *Var) *Var {
	a, b = promoted(a, b)
	return made("Mul", tensor.Mul(a.t, b.t), a, b).reads(a.t, b.t).twice(func(y, dy *Var) (d derivatives) {
		for i, in := range y.inputs {
			if in.wanted() {
				d.few[i] = Mul(dy, y.inputs[1-i])
			}
		}
		return d
	})
}

// Div returns a / b, elementwise.
func Div(a, b *Var) *Var {
	a, b = promoted(a, b)
	v := made("Div", tensor.Div(a.t, b.t), a, b)
	return v.reads(b.t, v.t).twice(func(y, dy *Var) (d derivatives) {
		da := Div(dy, y.inputs[1])
		if d = of(da); y.inputs[1].wanted() {
			d.few[1] = Neg(Mul(da, y))
		}
		return d
	})
}

// AddScalar returns x + c.
func AddScalar(x *Var, c float64) *Var { return made("AddScalar", plus(x.t, c), x).twice(same) }

// MulScalar returns c · x.
func MulScalar(x *Var, c float64) *Var {
	y := made("MulScalar", with(tensor.Mul, x.t, c), x)
	y.note.factor = c
	return y.twice(func(y, dy *Var) derivatives { return of(MulScalar(dy, y.note.factor)) })
}

// Neg returns -x.
func Neg(x *Var) *Var {
	return made("Neg", tensor.Neg(x.t), x).twice(func(_, dy *Var) derivatives { return of(Neg(dy)) })
}

// Exp returns e to the power of each element.
func Exp(x *Var) *Var {
	y := made("Exp", tensor.Exp(x.t), x)
	return y.reads(y.t).twice(func(y, dy *Var) derivatives { return of(Mul(dy, y)) })
}

// Log returns the natural logarithm.
func Log(x *Var) *Var {
	return made("Log", tensor.Log(x.t), x).reads(x.t).
		twice(func(y, dy *Var) derivatives { return of(Div(dy, y.inputs[0])) })
}

// Sqrt returns the square root.
func Sqrt(x *Var) *Var {
	y := made("Sqrt", tensor.Sqrt(x.t), x)
	return y.reads(y.t).twice(func(y, dy *Var) derivatives { return of(MulScalar(Div(dy, y), 0.5)) })
}

// Abs returns the absolute value. The gradient at zero is zero.
func Abs(x *Var) *Var {
	return made("Abs", tensor.Abs(x.t), x).reads(x.t).twice(func(y, dy *Var) derivatives {
		return of(Mul(dy, dy.constant(tensor.Sign(y.inputs[0].t))))
	})
}

// Power returns a to the power of b, elementwise.
func Power(a, b *Var) *Var {
	a, b = promoted(a, b)
	v := made("Power", tensor.Power(a.t, b.t), a, b)
	return v.reads(a.t, b.t, v.t).twice(powerTwice)
}

func powerTwice(y, dy *Var) (d derivatives) {
	a, b := y.inputs[0], y.inputs[1]
	if a.wanted() { // b · a^(b-1), or 0 where b is 0
		da := Mul(dy, Mul(b, Power(a, AddScalar(b, -1))))
		d.few[0] = Where(dy.own(with(tensor.Eq, b.t, 0)), dy.like(0), da)
	}
	if b.wanted() { // y · log a, or 0 where a is 0 and b is not negative
		none, positive := dy.own(with(tensor.Eq, a.t, 0)), dy.own(with(tensor.Ge, b.t, 0))
		d.few[1] = Where(dy.own(tensor.And(none, positive)), dy.like(0), Mul(dy, Mul(y, Log(a))))
	}
	return d
}

// Pow returns each element raised to the power of p.
func Pow(x *Var, p float64) *Var {
	y := made("Pow", tensor.Pow(x.t, p), x).reads(x.t)
	y.note.factor = p
	return y.twice(func(y, dy *Var) derivatives {
		if p := y.note.factor; p != 0 {
			return of(Mul(dy, MulScalar(Pow(y.inputs[0], p-1), p)))
		}
		return of(dy.constant(dy.t.NewZeros(dy.t.DType(), y.Shape()...))) // valid for x = 0 too
	})
}

// Tanh returns the hyperbolic tangent.
func Tanh(x *Var) *Var {
	y := made("Tanh", tensor.Tanh(x.t), x)
	return y.reads(y.t).derived(tanhBackward,
		func(y, dy *Var) derivatives { return of(Mul(dy, AddScalar(Neg(Mul(y, y)), 1))) })
}

// tanhBackward computes (1 - y²) · dy in the memory of dx.
func tanhBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].write(func(dx *tensor.Tensor) { dx.CopyFrom(y.t).Mul(y.t).Neg().AddScalar(1).Mul(dy) })
}

// Sigmoid returns 1 / (1 + e^-x).
func Sigmoid(x *Var) *Var {
	y := made("Sigmoid", tensor.Sigmoid(x.t), x)
	return y.reads(y.t).derived(sigmoidBackward,
		func(y, dy *Var) derivatives { return of(Mul(dy, Mul(y, AddScalar(Neg(y), 1)))) })
}

// sigmoidBackward computes (1 - y) · y · dy in the memory of dx.
func sigmoidBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].write(func(dx *tensor.Tensor) { dx.CopyFrom(y.t).Neg().AddScalar(1).Mul(y.t).Mul(dy) })
}

// same is the rule of operations with derivative 1.
func same(_, dy *Var) derivatives { return of(dy) }

// with returns f(t, c) for a number c.
func with(f func(a, b *tensor.Tensor) *tensor.Tensor, t *tensor.Tensor, c float64) *tensor.Tensor {
	number := t.Number(c)
	defer release(number)
	return f(t, number)
}

// plus returns t + c.
func plus(t *tensor.Tensor, c float64) *tensor.Tensor { return with(tensor.Add, t, c) }

// unary records y as the result of an operation on x on a device. derive converts the gradient of y
// to the gradient of x: it must return a new tensor, or its argument. derive reads keep, which is
// nil if it reads nothing.
func unary(op string, x *Var, y, keep *tensor.Tensor, derive func(dy *tensor.Tensor) *tensor.Tensor) *Var {
	v := made(op, y, x)
	if v.needs {
		if keep != nil {
			v.save(keep)
		}
		v.backward = func(dy *tensor.Tensor) {
			if dx := derive(dy); dx == dy {
				x.add(dx)
			} else {
				x.take(dx)
			}
		}
	}
	return v
}
