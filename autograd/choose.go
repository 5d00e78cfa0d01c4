package autograd

import "github.com/shoal-mp/shoal/tensor"

// Where returns the elements of a where c (Bool) is true and those of b elsewhere. All three are
// broadcast.
func Where(c *tensor.Tensor, a, b *Var) *Var {
	v := made("Where", tensor.Where(c, a.t, b.t), a, b)
	if v.needs {
		v.save(c)
		v.backward = func(dy *tensor.Tensor) {
			zero := dy.Number(0)
			a.add(tensor.Where(c, dy, zero))
			b.add(tensor.Where(c, zero, dy))
		}
	}
	return v.twice(func(_, dy *Var) []*Var { return of(Where(c, dy, dy.like(0)), Where(c, dy.like(0), dy)) })
}

// Maximum returns the larger of each pair of elements. If both are equal, each gets half of the
// gradient. If one is NaN, each gets all of it.
func Maximum(a, b *Var) *Var { return prefer("Maximum", a, b, tensor.Maximum, tensor.Lt) }

// Minimum returns the lesser of each pair of elements. Equal elements and NaN get the gradient as
// in Maximum.
func Minimum(a, b *Var) *Var { return prefer("Minimum", a, b, tensor.Minimum, tensor.Gt) }

func prefer(op string, a, b *Var, f, worse func(a, b *tensor.Tensor) *tensor.Tensor) *Var {
	v := made(op, f(a.t, b.t), a, b)
	if v.needs {
		v.save(a.t, b.t)
		v.backward = func(dy *tensor.Tensor) {
			shared := tensor.Where(tensor.Eq(a.t, b.t), tensor.Mul(dy, dy.Number(0.5)), dy)
			a.add(tensor.Where(worse(a.t, b.t), dy.Number(0), shared))
			b.add(tensor.Where(worse(b.t, a.t), dy.Number(0), shared))
		}
	}
	return v.twice(func(_, dy *Var) []*Var {
		shared := Where(tensor.Eq(a.t, b.t), MulScalar(dy, 0.5), dy)
		return of(Where(worse(a.t, b.t), dy.like(0), shared), Where(worse(b.t, a.t), dy.like(0), shared))
	})
}

// Clamp returns x with elements below lo set to lo and those above hi set to hi. Only elements
// strictly between lo and hi get a gradient, as in PyTorch 2.15; before, elements equal to lo or hi
// got one as well.
func Clamp(x *Var, lo, hi float64) *Var {
	return unary("Clamp", x, tensor.Clamp(x.t, lo, hi), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(between(x.t, lo, hi), dy, dy.Number(0))
	}).twice(func(_, dy *Var) []*Var { return of(Where(between(x.t, lo, hi), dy, dy.like(0))) })
}

func between(t *tensor.Tensor, lo, hi float64) *tensor.Tensor {
	return tensor.And(tensor.Gt(t, t.Number(lo)), tensor.Lt(t, t.Number(hi)))
}

// MaskedFill returns x with elements set to c where mask (Bool) is true. mask broadcasts to x's
// shape.
func MaskedFill(x *Var, mask *tensor.Tensor, c float64) *Var {
	return unary("MaskedFill", x, x.t.Clone().MaskedFill(mask, c), mask, func(dy *tensor.Tensor) *tensor.Tensor {
		return dy.Clone().MaskedFill(mask, 0)
	}).twice(func(_, dy *Var) []*Var { return of(MaskedFill(dy, mask, 0)) })
}
