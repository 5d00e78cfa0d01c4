package autograd

import "github.com/shoal-mp/shoal/tensor"

// Add returns a + b. All operations of two values broadcast their shapes as PyTorch does.
func Add(a, b *Var) *Var {
	v := made("Add", tensor.Add(a.t, b.t), a, b)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			a.add(dy)
			b.add(dy)
		}
	}
	return v.twice(func(_, dy *Var) []*Var { return of(dy, dy) })
}

// Sub returns a - b.
func Sub(a, b *Var) *Var {
	v := made("Sub", tensor.Sub(a.t, b.t), a, b)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			a.add(dy)
			if b.wanted() {
				b.take(tensor.Neg(dy))
			}
		}
	}
	return v.twice(func(_, dy *Var) []*Var { return of(dy, Neg(dy)) })
}

// Mul returns a · b, elementwise.
func Mul(a, b *Var) *Var {
	v := made("Mul", tensor.Mul(a.t, b.t), a, b)
	if v.needs {
		v.save(a.t, b.t)
		v.backward = func(dy *tensor.Tensor) {
			if a.wanted() {
				a.take(tensor.Mul(dy, b.t))
			}
			if b.wanted() {
				b.take(tensor.Mul(dy, a.t))
			}
		}
	}
	return v.twice(func(y, dy *Var) []*Var { return of(Mul(dy, y.inputs[1]), Mul(dy, y.inputs[0])) })
}

// Div returns a / b, elementwise.
func Div(a, b *Var) *Var {
	v := made("Div", tensor.Div(a.t, b.t), a, b)
	if v.needs {
		v.save(b.t, v.t)
		v.backward = func(dy *tensor.Tensor) {
			da := tensor.Div(dy, b.t)
			a.add(da)
			if b.wanted() {
				b.take(tensor.Mul(da, v.t).Neg())
			}
			da.Close()
		}
	}
	return v.twice(func(y, dy *Var) []*Var {
		da := Div(dy, y.inputs[1])
		return of(da, Neg(Mul(da, y)))
	})
}

// AddScalar returns x + c.
func AddScalar(x *Var, c float64) *Var {
	return unary("AddScalar", x, plus(x.t, c), nil, func(dy *tensor.Tensor) *tensor.Tensor { return dy }).twice(same)
}

// MulScalar returns c · x.
func MulScalar(x *Var, c float64) *Var {
	y := unary("MulScalar", x, tensor.Mul(x.t, x.t.Number(c)), nil,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Mul(dy, dy.Number(c)) })
	y.note.factor = c
	return y.twice(func(y, dy *Var) []*Var { return of(MulScalar(dy, y.note.factor)) })
}

// Neg returns -x.
func Neg(x *Var) *Var {
	return unary("Neg", x, tensor.Neg(x.t), nil, tensor.Neg).twice(func(_, dy *Var) []*Var { return of(Neg(dy)) })
}

// Exp returns e to the power of each element.
func Exp(x *Var) *Var {
	y := tensor.Exp(x.t)
	return unary("Exp", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Mul(dy, y) }).
		twice(func(y, dy *Var) []*Var { return of(Mul(dy, y)) })
}

// Log returns the natural logarithms.
func Log(x *Var) *Var {
	return unary("Log", x, tensor.Log(x.t), x.t, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Div(dy, x.t) }).
		twice(func(y, dy *Var) []*Var { return of(Div(dy, y.inputs[0])) })
}

// Sqrt returns the square roots.
func Sqrt(x *Var) *Var {
	y := tensor.Sqrt(x.t)
	return unary("Sqrt", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Div(dy, y).MulScalar(0.5) }).
		twice(func(y, dy *Var) []*Var { return of(MulScalar(Div(dy, y), 0.5)) })
}

// Abs returns the absolute values. The gradient at zero is zero.
func Abs(x *Var) *Var {
	return unary("Abs", x, tensor.Abs(x.t), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Sign(x.t).Mul(dy)
	}).twice(func(y, dy *Var) []*Var { return of(Mul(dy, Const(tensor.Sign(y.inputs[0].t)))) })
}

// Power returns a to the power of b, elementwise.
func Power(a, b *Var) *Var {
	v := made("Power", tensor.Power(a.t, b.t), a, b)
	if v.needs {
		v.save(a.t, b.t, v.t)
		v.backward = func(dy *tensor.Tensor) {
			if a.wanted() { // b · a^(b-1), and 0 where b is 0
				da := tensor.Power(a.t, plus(b.t, -1)).Mul(dy)
				a.add(tensor.Mul(tensor.Where(tensor.Eq(b.t, b.t.Number(0)), da.Number(0), da), b.t))
			}
			if b.wanted() { // v · log a, and 0 where a is 0 and b is not negative
				db := tensor.Mul(tensor.Log(a.t), v.t)
				flat := tensor.And(tensor.Eq(a.t, a.t.Number(0)), tensor.Ge(b.t, b.t.Number(0)))
				b.add(tensor.Where(flat, db.Number(0), db).Mul(dy))
			}
		}
	}
	return v.twice(powerTwice)
}

func powerTwice(y, dy *Var) []*Var {
	var da, db *Var
	a, b := y.inputs[0], y.inputs[1]
	if a.wanted() {
		da = Where(tensor.Eq(b.t, b.t.Number(0)), dy.like(0), Mul(dy, Mul(b, Power(a, AddScalar(b, -1)))))
	}
	if b.wanted() {
		flat := tensor.And(tensor.Eq(a.t, a.t.Number(0)), tensor.Ge(b.t, b.t.Number(0)))
		db = Where(flat, dy.like(0), Mul(dy, Mul(y, Log(a))))
	}
	return of(da, db)
}

// Pow returns each element to the power of p.
func Pow(x *Var, p float64) *Var {
	y := unary("Pow", x, tensor.Pow(x.t, p), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		if p == 0 { // also where x is
			return dy.Number(0)
		}
		return tensor.Pow(x.t, p-1).MulScalar(p).Mul(dy)
	})
	y.note.factor = p
	return y.twice(func(y, dy *Var) []*Var {
		if p := y.note.factor; p != 0 {
			return of(Mul(dy, MulScalar(Pow(y.inputs[0], p-1), p)))
		}
		return of(Expand(dy.like(0), y.Shape()...))
	})
}

// Tanh returns the hyperbolic tangents.
func Tanh(x *Var) *Var {
	y := tensor.Tanh(x.t)
	return unary("Tanh", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { // 1 - y²
		return tensor.Mul(y, y).Neg().AddScalar(1).Mul(dy)
	}).twice(func(y, dy *Var) []*Var { return of(Mul(dy, AddScalar(Neg(Mul(y, y)), 1))) })
}

// Sigmoid returns 1 / (1 + e^-x).
func Sigmoid(x *Var) *Var {
	y := tensor.Sigmoid(x.t)
	return unary("Sigmoid", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor { // y · (1 - y)
		return tensor.Neg(y).AddScalar(1).Mul(y).Mul(dy)
	}).twice(func(y, dy *Var) []*Var { return of(Mul(dy, Mul(y, AddScalar(Neg(y), 1)))) })
}

// same is the rule of what is added up as it is.
func same(_, dy *Var) []*Var { return of(dy) }

// ruled records t as computed from inputs, with one rule for derivatives of any order: those of
// Backward are computed by it from values that need no gradient.
func ruled(op string, t *tensor.Tensor, r rule, inputs ...*Var) *Var {
	v := made(op, t, inputs...)
	if v.needs {
		y := &Var{t: t, inputs: make([]*Var, len(inputs))}
		for i, in := range inputs {
			v.save(in.t)
			y.inputs[i] = Const(in.t)
		}
		v.backward = func(dy *tensor.Tensor) {
			for i, dx := range r(y, Const(dy)) {
				inputs[i].add(dx.t)
			}
		}
	}
	return v.twice(r)
}

// unary records y as computed from x, where derive turns the gradient of y into that of x and reads
// keep, unless it is nil. What derive returns is made for it, or is what it was given.
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
