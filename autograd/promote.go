package autograd

import "github.com/shoal-mp/shoal/tensor"

// promotePair returns a and b converted to the dtype of [tensor.ResultType]. The gradient of a
// converted input is converted back.
func promotePair(a, b *Var) (x, y *Var) {
	if a.t.DType() == b.t.DType() {
		return a, b
	}
	dt := tensor.ResultType(a.t, b.t)
	return a.convertTo(dt), b.convertTo(dt)
}

// promoteAll is like promotePair, for the operands of Cat and Stack: scalars also participate in
// the promotion. xs must not be empty.
func promoteAll(xs []*Var) []*Var {
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
		all[i] = x.convertTo(dt)
	}
	return all
}

// convertTo returns v converted to dt, or v itself if it has this dtype.
func (v *Var) convertTo(dt tensor.DType) *Var {
	if v.t.DType() == dt {
		return v
	}
	return wrapOwned("To", v.t.To(dt), v).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(dy.convertTo(y.inputs[0].t.DType())) })
}
