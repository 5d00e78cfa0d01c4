package autograd

import "github.com/shoal-mp/shoal/tensor"

// promoted returns a and b converted to the dtype of [tensor.ResultType]. The gradient of a
// converted input is converted back.
func promoted(a, b *Var) (x, y *Var) {
	if a.t.DType() == b.t.DType() {
		return a, b
	}
	dt := tensor.ResultType(a.t, b.t)
	return a.as(dt), b.as(dt)
}

// promotedAll is like promoted, for the operands of Cat and Stack: scalars also participate in the
// promotion.
func promotedAll(xs []*Var) []*Var {
	dt, same := xs[0].t.DType(), true
	for _, x := range xs[1:] {
		same = same && x.t.DType() == dt
	}
	if same {
		return xs
	}
	for _, x := range xs {
		dt = tensor.Promote(dt, x.t.DType())
	}
	all := make([]*Var, len(xs))
	for i, x := range xs {
		all[i] = x.as(dt)
	}
	return all
}

// as returns v converted to dt.
func (v *Var) as(dt tensor.DType) *Var {
	if v.t.DType() == dt {
		return v
	}
	return made("To", v.t.To(dt), v).
		twice(func(y, dy *Var) derivatives { return of(dy.as(y.inputs[0].t.DType())) })
}
