package autograd

import "github.com/shoal-mp/shoal/tensor"

// Where returns a's elements where c, which is Bool, is true, and b's elsewhere; all three broadcast.
func Where(c *tensor.Tensor, a, b *Var) *Var {
	v := wrap("Where", tensor.Where(c, a.t, b.t), a, b)
	if v.needs {
		v.save(c)
		v.backward = func(dy *tensor.Tensor) {
			zero := dy.Number(0)
			a.add(tensor.Where(c, dy, zero))
			b.add(tensor.Where(c, zero, dy))
		}
	}
	return v
}

// Maximum returns the larger of each pair of elements. Of equal ones both get half of the gradient.
func Maximum(a, b *Var) *Var { return prefer("Maximum", a, b, tensor.Maximum, tensor.Gt) }

// Minimum returns the lesser of each pair of elements. Of equal ones both get half of the gradient.
func Minimum(a, b *Var) *Var { return prefer("Minimum", a, b, tensor.Minimum, tensor.Lt) }

func prefer(op string, a, b *Var, f, better func(a, b *tensor.Tensor) *tensor.Tensor) *Var {
	v := wrap(op, f(a.t, b.t), a, b)
	if v.needs {
		v.save(a.t, b.t)
		v.backward = func(dy *tensor.Tensor) {
			half := tensor.Eq(a.t, b.t).To(dy.DType()).MulScalar(0.5)
			a.add(better(a.t, b.t).To(dy.DType()).Add(half).Mul(dy))
			b.add(better(b.t, a.t).To(dy.DType()).Add(half).Mul(dy))
		}
	}
	return v
}

// Clamp returns x with elements below lo moved up to lo and those above hi down to hi, which get no gradient.
func Clamp(x *Var, lo, hi float64) *Var {
	return unary("Clamp", x, tensor.Clamp(x.t, lo, hi), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		inside := tensor.And(tensor.Ge(x.t, x.t.Number(lo)), tensor.Le(x.t, x.t.Number(hi)))
		return inside.To(dy.DType()).Mul(dy)
	})
}

// MaskedFill returns x with elements where mask, which is Bool and broadcasts to x, is true set to c.
func MaskedFill(x *Var, mask *tensor.Tensor, c float64) *Var {
	return unary("MaskedFill", x, x.t.Clone().MaskedFill(mask, c), mask, func(dy *tensor.Tensor) *tensor.Tensor {
		return dy.Clone().MaskedFill(mask, 0)
	})
}
