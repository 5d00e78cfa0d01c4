package autograd

import "github.com/shoal-mp/shoal/tensor"

// Add returns a + b. All elementwise operations of two values broadcast their shapes and promote
// their dtypes as PyTorch does: each gradient has the dtype of its value. The operands of matrix
// products, layers and norms must have the same dtype, as in PyTorch.
func Add(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Add", tensor.Add(a.t, b.t), a, b).
		setRule(func(_, dy *Var) derivatives { return derivativesOf(dy, dy) })
}

// Sub returns a - b.
func Sub(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Sub", tensor.Sub(a.t, b.t), a, b).setRule(func(y, dy *Var) (d derivatives) {
		if d = derivativesOf(dy); y.inputs[1].needsGradient() {
			d.few[1] = Neg(dy)
		}
		return d
	})
}

// Mul returns a · b, elementwise.
func Mul(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Mul", tensor.Mul(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).
		setRule(func(y, dy *Var) (d derivatives) {
			for i, in := range y.inputs {
				if in.needsGradient() {
					d.few[i] = Mul(dy, y.inputs[1-i])
				}
			}
			return d
		})
}

// Div returns a / b, elementwise.
func Div(a, b *Var) *Var {
	a, b = promotePair(a, b)
	v := wrapOwned("Div", tensor.Div(a.t, b.t), a, b)
	return v.saveIfNeeded(b.t, v.t).setRule(func(y, dy *Var) (d derivatives) {
		da := Div(dy, y.inputs[1])
		if d = derivativesOf(da); y.inputs[1].needsGradient() {
			d.few[1] = Neg(Mul(da, y))
		}
		return d
	})
}

// AddScalar returns x + c.
func AddScalar(x *Var, c float64) *Var {
	return wrapOwned("AddScalar", addNumber(x.t, c), x).setRule(identityRule)
}

// MulScalar returns c · x.
func MulScalar(x *Var, c float64) *Var {
	y := wrapOwned("MulScalar", applyNumber(tensor.Mul, x.t, c), x)
	y.note.factor = c
	return y.setRule(func(y, dy *Var) derivatives { return derivativesOf(MulScalar(dy, y.note.factor)) })
}

// Neg returns -x.
func Neg(x *Var) *Var {
	return wrapOwned("Neg", tensor.Neg(x.t), x).setRule(func(_, dy *Var) derivatives { return derivativesOf(Neg(dy)) })
}

// Exp returns e to the power of each element.
func Exp(x *Var) *Var {
	y := wrapOwned("Exp", tensor.Exp(x.t), x)
	return y.saveIfNeeded(y.t).setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, y)) })
}

// Log returns the natural logarithm.
func Log(x *Var) *Var {
	return wrapOwned("Log", tensor.Log(x.t), x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Div(dy, y.inputs[0])) })
}

// Sqrt returns the square root.
func Sqrt(x *Var) *Var {
	y := wrapOwned("Sqrt", tensor.Sqrt(x.t), x)
	return y.saveIfNeeded(y.t).setRule(func(y, dy *Var) derivatives {
		return derivativesOf(MulScalar(Div(dy, y),
			0.5))
	})
}

// Abs returns the absolute value. The gradient at zero is zero.
func Abs(x *Var) *Var {
	return wrapOwned("Abs", tensor.Abs(x.t), x).saveIfNeeded(x.t).setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Mul(dy, dy.wrapConst(tensor.Sign(y.inputs[0].t))))
	})
}

// Power returns a to the power of b, elementwise.
func Power(a, b *Var) *Var {
	a, b = promotePair(a, b)
	v := wrapOwned("Power", tensor.Power(a.t, b.t), a, b)
	return v.saveIfNeeded(a.t, b.t, v.t).setRule(powerTwice)
}

func powerTwice(y, dy *Var) (d derivatives) {
	a, b := y.inputs[0], y.inputs[1]
	if a.needsGradient() { // b · a^(b-1), or 0 where b is 0
		da := Mul(dy, Mul(b, Power(a, AddScalar(b, -1))))
		d.few[0] = Where(dy.ownTensor(applyNumber(tensor.Eq, b.t, 0)), dy.constLike(0), da)
	}
	if b.needsGradient() { // y · log a, or 0 where a is 0 and b is not negative
		none, positive := dy.ownTensor(applyNumber(tensor.Eq, a.t, 0)), dy.ownTensor(applyNumber(tensor.Ge, b.t, 0))
		d.few[1] = Where(dy.ownTensor(tensor.And(none, positive)), dy.constLike(0), Mul(dy, Mul(y, Log(a))))
	}
	return d
}

// Pow returns each element raised to the power of p.
func Pow(x *Var, p float64) *Var {
	y := wrapOwned("Pow", tensor.Pow(x.t, p), x).saveIfNeeded(x.t)
	y.note.factor = p
	return y.setRule(func(y, dy *Var) derivatives {
		if p := y.note.factor; p != 0 {
			return derivativesOf(Mul(dy, MulScalar(Pow(y.inputs[0], p-1), p)))
		}
		return derivativesOf(dy.wrapConst(dy.t.NewZeros(dy.t.DType(), y.Shape()...))) // valid for x = 0 too
	})
}

// Tanh returns the hyperbolic tangent.
func Tanh(x *Var) *Var {
	y := wrapOwned("Tanh", tensor.Tanh(x.t), x)
	return y.saveIfNeeded(y.t).setDerivatives(tanhBackward,
		func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, AddScalar(Neg(Mul(y, y)), 1))) })
}

// tanhBackward adds (1 - y²) · dy to the gradient of y's input.
func tanhBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		dx.CopyFrom(y.t).MulInPlace(y.t).NegInPlace().AddScalarInPlace(1).MulInPlace(dy)
	})
}

// Sigmoid returns 1 / (1 + e^-x).
func Sigmoid(x *Var) *Var {
	y := wrapOwned("Sigmoid", tensor.Sigmoid(x.t), x)
	return y.saveIfNeeded(y.t).setDerivatives(sigmoidBackward,
		func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, Mul(y, AddScalar(Neg(y), 1)))) })
}

// sigmoidBackward adds (1 - y) · y · dy to the gradient of y's input.
func sigmoidBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		dx.CopyFrom(y.t).NegInPlace().AddScalarInPlace(1).MulInPlace(y.t).MulInPlace(dy)
	})
}

// identityRule is the rule of operations with derivative 1.
func identityRule(_, dy *Var) derivatives { return derivativesOf(dy) }

// applyNumber returns f(t, c) for a number c.
func applyNumber(f func(a, b *tensor.Tensor) *tensor.Tensor, t *tensor.Tensor, c float64) *tensor.Tensor {
	number := t.Number(c)
	defer release(number)
	return f(t, number)
}

// addNumber returns t + c.
func addNumber(t *tensor.Tensor, c float64) *tensor.Tensor { return applyNumber(tensor.Add, t, c) }

// recordUnary returns a Var for y, the result of an operation on x on a device. It takes
// ownership of y. derive converts the gradient of y to the gradient of x: it must return a new
// tensor, which recordUnary's derivation closes, or its argument. keep is the tensor that derive
// reads, or nil; Backward panics if keep was changed in the meantime.
func recordUnary(op string, x *Var, y, keep *tensor.Tensor, derive func(dy *tensor.Tensor) *tensor.Tensor) *Var {
	v := wrapOwned(op, y, x)
	if v.needs {
		if keep != nil {
			v.saveTensors(keep)
		}
		v.backward = func(dy *tensor.Tensor) {
			if dx := derive(dy); dx == dy {
				x.addGradient(dx)
			} else {
				x.addAndClose(dx)
			}
		}
	}
	return v
}
