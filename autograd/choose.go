package autograd

import "github.com/shoal-mp/shoal/tensor"

// Where returns the elements of a where c is true, and the elements of b elsewhere. c must be Bool.
// All three are broadcast.
func Where(c *tensor.Tensor, a, b *Var) *Var {
	a, b = promoted(a, b)
	return made("Where", tensor.Where(c, a.t, b.t), a, b).reads(c).twice(func(y, dy *Var) (d derivatives) {
		c := y.saved[0].t
		if y.inputs[0].wanted() {
			d.few[0] = Where(c, dy, dy.like(0))
		}
		if y.inputs[1].wanted() {
			d.few[1] = Where(c, dy.like(0), dy)
		}
		return d
	})
}

// Maximum returns the larger of each pair of elements. If both are equal, each gets half of the
// gradient. If one is NaN, each gets all of it.
func Maximum(a, b *Var) *Var {
	a, b = promoted(a, b)
	return made("Maximum", tensor.Maximum(a.t, b.t), a, b).reads(a.t, b.t).
		twice(func(y, dy *Var) derivatives { return prefer(y, dy, tensor.Lt) })
}

// Minimum returns the smaller of each pair of elements. The gradient of equal elements and NaN is
// the same as for [Maximum].
func Minimum(a, b *Var) *Var {
	a, b = promoted(a, b)
	return made("Minimum", tensor.Minimum(a.t, b.t), a, b).reads(a.t, b.t).
		twice(func(y, dy *Var) derivatives { return prefer(y, dy, tensor.Gt) })
}

// prefer passes no gradient to the input for which worse is true.
func prefer(y, dy *Var, worse func(a, b *tensor.Tensor) *tensor.Tensor) derivatives {
	a, b := y.inputs[0].t, y.inputs[1].t
	shared := Where(dy.own(tensor.Eq(a, b)), MulScalar(dy, 0.5), dy)
	return of(Where(dy.own(worse(a, b)), dy.like(0), shared), Where(dy.own(worse(b, a)), dy.like(0), shared))
}

// Clamp returns the elements of x limited to the range from lo to hi. Only elements strictly
// between lo and hi get a gradient, as in PyTorch 2.15; in earlier versions, elements equal to lo
// or hi got one as well.
func Clamp(x *Var, lo, hi float64) *Var { return clamp("Clamp", x, lo, hi) }

func clamp(op string, x *Var, lo, hi float64) *Var {
	y := made(op, tensor.Clamp(x.t, lo, hi), x).reads(x.t)
	y.note.limits = [2]float64{lo, hi}
	return y.twice(func(y, dy *Var) derivatives {
		return of(Where(between(dy, y.inputs[0].t, y.note.limits), dy, dy.like(0)))
	})
}

// between returns a mask of the elements of t strictly between limits. v's scope owns it.
func between(v *Var, t *tensor.Tensor, limits [2]float64) *tensor.Tensor {
	above, below := v.own(with(tensor.Gt, t, limits[0])), v.own(with(tensor.Lt, t, limits[1]))
	return v.own(tensor.And(above, below))
}

// MaskedFill returns x with elements set to c where mask is true. mask must be Bool; it is
// broadcast to x's shape.
func MaskedFill(x *Var, mask *tensor.Tensor, c float64) *Var {
	return made("MaskedFill", x.t.Clone().MaskedFill(mask, c), x).reads(mask).
		twice(func(y, dy *Var) derivatives { return of(MaskedFill(dy, y.saved[0].t, 0)) })
}
