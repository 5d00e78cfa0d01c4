package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// openInner returns a scope for the values of a checkpointed function. It ends with reclaimInner,
// before s, and is reused by the next function. If s is nil, the garbage collector frees it.
func (s *Scope) openInner() *Scope {
	if s == nil {
		return NewScope()
	}
	var inner *Scope
	if last := len(s.idle) - 1; last >= 0 {
		inner, s.idle = s.idle[last], s.idle[:last]
	} else {
		inner = NewScope()
		inner.outer, inner.depth = s, s.depth+1
	}
	inner.keeps = s.keeps
	s.inner = append(s.inner, inner)
	return inner
}

// reclaimInner reclaims all memory of an inner scope. Its values must no longer be used. It does
// nothing for other scopes.
func (s *Scope) reclaimInner() {
	if s.outer == nil {
		return
	}
	s.left = 0
	s.Reset()
	in := &s.outer.inner
	i := slices.Index(*in, s)
	*in = slices.Delete(*in, i, i+1)
	s.outer.idle = append(s.outer.idle, s)
}

// trackInner records that the end of an inner scope depends on the walk's visit of v.
func (w *walk) trackInner(v *Var) {
	if v.part = w.part; v.part != nil {
		v.part.left++
	}
}

// recordVisit records a visit of v, and ends the inner scope after the last one. The visited values
// may belong to other scopes too, because they may be computed from tensors of this one.
func (s *Scope) recordVisit(v *Var) {
	if s == nil {
		return
	}
	v.part = nil
	if s.left--; s.left == 0 {
		s.reclaimInner()
	}
}

// passInputs returns values of the scope that equal in and propagate their gradients.
func (s *Scope) passInputs(in []*Var) []*Var {
	inner := s.newVarList(len(in))
	for i, x := range in {
		s.keeps = s.keeps || x.KeepsBuffers()
		inner[i] = passValue(s.newVar(), x)
	}
	return inner
}

// passValue makes v equal to x, with a gradient that propagates to x, and returns v. v must be
// new.
func passValue(v, x *Var) *Var {
	v.op, v.t, v.quiet, v.needs = "Checkpoint", x.t, x.quiet, x.needs
	if v.needs {
		v.inputs, v.derive, v.again = append(v.inputRoom[:0], x), passGradient, identityRule
	}
	return v
}

func passGradient(y *Var, dy *tensor.Tensor) { y.inputs[0].addGradient(dy) }

// outerTensor returns the tensor of y, a value of an inner scope, for a value of s, which outlives
// it. Tensors that the inner scope owns are moved to s. Views and possible views are copied.
func (s *Scope) outerTensor(y *Var, inner *Scope, in []*Var) *tensor.Tensor {
	if s == nil || y.param != nil || slices.ContainsFunc(in, func(x *Var) bool { return x.t == y.t }) {
		return y.t
	}
	if inner.detachTensor(y.t, mark{}) {
		s.made = append(s.made, y.t)
		return y.t
	}
	t := s.newEmpty(y.t.Device(), y.t.DType(), y.t.Shape())
	if i := slices.Index(inner.lent, y.t); i >= 0 { // exchange them
		own := len(s.lent) - 1
		inner.lent[i], s.lent[own] = t, y.t
		return y.t
	}
	return t.CopyFrom(y.t)
}
