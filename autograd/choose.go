package autograd

import "github.com/shoal-mp/shoal/tensor"

// Where returns the elements of a where c is true, and the elements of b elsewhere. c must be
// Bool, and must stay open and unchanged until Backward. All three are broadcast.
func Where(c *tensor.Tensor, a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Where", tensor.Where(c, a.t, b.t), a, b).saveIfNeeded(c).
		setRule(func(y, dy *Var) (d derivatives) {
			c := y.saved[0].t
			if y.inputs[0].needsGradient() {
				d.few[0] = Where(c, dy, dy.constLike(0))
			}
			if y.inputs[1].needsGradient() {
				d.few[1] = Where(c, dy.constLike(0), dy)
			}
			return d
		})
}

// Maximum returns the larger of each pair of elements. If both are equal, each gets half of the
// gradient. If one is NaN, each gets all of it.
func Maximum(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Maximum", tensor.Maximum(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).
		setRule(func(y, dy *Var) derivatives { return routeGradient(y, dy, tensor.Lt) })
}

// Minimum returns the smaller of each pair of elements. The gradient of equal elements and NaN is
// the same as for [Maximum].
func Minimum(a, b *Var) *Var {
	a, b = promotePair(a, b)
	return wrapOwned("Minimum", tensor.Minimum(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).
		setRule(func(y, dy *Var) derivatives { return routeGradient(y, dy, tensor.Gt) })
}

// routeGradient is the rule of Maximum and Minimum. An element of dy goes to the input for which
// worse is false, and half of it to each input if they are equal. worse(a, b) must be true where
// a is not selected.
func routeGradient(y, dy *Var, worse func(a, b *tensor.Tensor) *tensor.Tensor) derivatives {
	a, b := y.inputs[0].t, y.inputs[1].t
	shared := Where(dy.ownTensor(tensor.Eq(a, b)), MulScalar(dy, 0.5), dy)
	return derivativesOf(Where(dy.ownTensor(worse(a, b)), dy.constLike(0), shared),
		Where(dy.ownTensor(worse(b, a)), dy.constLike(0), shared))
}

// Clamp returns the elements of x limited to the range from lo to hi. Only elements strictly
// between lo and hi get a gradient, as in PyTorch 2.15; in earlier versions, elements equal to lo
// or hi got one as well.
func Clamp(x *Var, lo, hi float64) *Var { return clamp("Clamp", x, lo, hi) }

func clamp(op string, x *Var, lo, hi float64) *Var {
	y := wrapOwned(op, tensor.Clamp(x.t, lo, hi), x).saveIfNeeded(x.t)
	y.note.limits = [2]float64{lo, hi}
	return y.setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Where(maskBetween(dy, y.inputs[0].t, y.note.limits), dy, dy.constLike(0)))
	})
}

// maskBetween returns a mask of the elements of t strictly between limits. v's scope owns it.
func maskBetween(v *Var, t *tensor.Tensor, limits [2]float64) *tensor.Tensor {
	above, below := v.ownTensor(applyNumber(tensor.Gt, t, limits[0])), v.ownTensor(applyNumber(tensor.Lt, t, limits[1]))
	return v.ownTensor(tensor.And(above, below))
}

// MaskedFill returns x with elements set to c where mask is true. mask must be Bool; it is
// broadcast to x's shape. It must stay open and unchanged until Backward.
func MaskedFill(x *Var, mask *tensor.Tensor, c float64) *Var {
	return wrapOwned("MaskedFill", x.t.Clone().MaskedFillInPlace(mask, c), x).saveIfNeeded(mask).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(MaskedFill(dy, y.saved[0].t, 0)) })
}
