package autograd

import "github.com/shoal-mp/shoal/tensor"

// Add returns a + b. As in all arithmetic of two values, shapes broadcast as in PyTorch.
func Add(a, b *Var) *Var {
	v := wrap("Add", tensor.Add(a.t, b.t), a, b)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			a.add(dy)
			b.add(dy)
		}
	}
	return v
}

// Sub returns a - b.
func Sub(a, b *Var) *Var {
	v := wrap("Sub", tensor.Sub(a.t, b.t), a, b)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			a.add(dy)
			if b.needs {
				b.add(tensor.Neg(dy))
			}
		}
	}
	return v
}

// Mul returns the product a · b, element by element.
func Mul(a, b *Var) *Var {
	v := wrap("Mul", tensor.Mul(a.t, b.t), a, b)
	if v.needs {
		v.save(a.t, b.t)
		v.backward = func(dy *tensor.Tensor) {
			if a.needs {
				a.add(tensor.Mul(dy, b.t))
			}
			if b.needs {
				b.add(tensor.Mul(dy, a.t))
			}
		}
	}
	return v
}

// Div returns a / b, element by element.
func Div(a, b *Var) *Var {
	v := wrap("Div", tensor.Div(a.t, b.t), a, b)
	if v.needs {
		v.save(b.t, v.t)
		v.backward = func(dy *tensor.Tensor) {
			da := tensor.Div(dy, b.t)
			a.add(da)
			if b.needs {
				b.add(tensor.Mul(da, v.t).Neg())
			}
		}
	}
	return v
}

// AddScalar returns x + c.
func AddScalar(x *Var, c float64) *Var {
	return unary("AddScalar", x, plus(x.t, c), nil, func(dy *tensor.Tensor) *tensor.Tensor { return dy })
}

// MulScalar returns c · x.
func MulScalar(x *Var, c float64) *Var {
	return unary("MulScalar", x, tensor.Mul(x.t, x.t.Number(c)), nil, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Mul(dy, dy.Number(c)) })
}

// Neg returns -x.
func Neg(x *Var) *Var { return unary("Neg", x, tensor.Neg(x.t), nil, tensor.Neg) }

// Exp returns e to the power of each element.
func Exp(x *Var) *Var {
	y := tensor.Exp(x.t)
	return unary("Exp", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Mul(dy, y) })
}

// Log returns the natural logarithms.
func Log(x *Var) *Var {
	return unary("Log", x, tensor.Log(x.t), x.t, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Div(dy, x.t) })
}

// Sqrt returns the square roots.
func Sqrt(x *Var) *Var {
	y := tensor.Sqrt(x.t)
	return unary("Sqrt", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Div(dy, y).MulScalar(0.5) })
}

// Abs returns the absolute values; the gradient at zero is zero.
func Abs(x *Var) *Var {
	return unary("Abs", x, tensor.Abs(x.t), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Sign(x.t).Mul(dy)
	})
}

// Power returns a to the power of b, element by element.
func Power(a, b *Var) *Var {
	v := wrap("Power", tensor.Power(a.t, b.t), a, b)
	if v.needs {
		v.save(a.t, b.t, v.t)
		v.backward = func(dy *tensor.Tensor) {
			if a.needs { // b · a^(b-1), and 0 where b is 0
				da := tensor.Power(a.t, plus(b.t, -1)).Mul(dy)
				a.add(tensor.Mul(tensor.Where(tensor.Eq(b.t, b.t.Number(0)), da.Number(0), da), b.t))
			}
			if b.needs { // v · log a, and 0 where a is 0 and b is not negative
				db := tensor.Mul(tensor.Log(a.t), v.t)
				flat := tensor.And(tensor.Eq(a.t, a.t.Number(0)), tensor.Ge(b.t, b.t.Number(0)))
				b.add(tensor.Where(flat, db.Number(0), db).Mul(dy))
			}
		}
	}
	return v
}

// Pow returns each element to the power of p.
func Pow(x *Var, p float64) *Var {
	return unary("Pow", x, tensor.Pow(x.t, p), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		if p == 0 { // also where x is
			return dy.Number(0)
		}
		return tensor.Pow(x.t, p-1).MulScalar(p).Mul(dy)
	})
}

// Tanh returns the hyperbolic tangents.
func Tanh(x *Var) *Var {
	y := tensor.Tanh(x.t)
	return unary("Tanh", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { // 1 - y²
		return tensor.Mul(y, y).Neg().AddScalar(1).Mul(dy)
	})
}

// Sigmoid returns 1 / (1 + e^-x).
func Sigmoid(x *Var) *Var {
	y := tensor.Sigmoid(x.t)
	return unary("Sigmoid", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { // y · (1 - y)
		return tensor.Mul(y, tensor.Neg(y).AddScalar(1)).Mul(dy)
	})
}

// unary records y as computed from x, where derive turns the gradient of y into that of x and reads keep, unless it is nil.
func unary(op string, x *Var, y, keep *tensor.Tensor, derive func(dy *tensor.Tensor) *tensor.Tensor) *Var {
	v := wrap(op, y, x)
	if v.needs {
		if keep != nil {
			v.save(keep)
		}
		v.backward = func(dy *tensor.Tensor) { x.add(derive(dy)) }
	}
	return v
}
