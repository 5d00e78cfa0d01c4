package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// within returns a scope for the values of a checkpointed function. It ends before s and is reused
// by the next function. If s is nil, the garbage collector frees it.
func (s *Scope) within() *Scope {
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

// end reclaims all memory of an inner scope. Its values must no longer be used.
func (s *Scope) end() {
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

// join records that the end of an inner scope depends on the walk's visit of v.
func (w *walk) join(v *Var) {
	if v.part = w.part; v.part != nil {
		v.part.left++
	}
}

// walked records a visit of v, and ends the inner scope after the last one. The visited values may
// belong to other scopes too, because they may be computed from tensors of this one.
func (s *Scope) walked(v *Var) {
	if s == nil {
		return
	}
	v.part = nil
	if s.left--; s.left == 0 {
		s.end()
	}
}

// passed returns values of the scope that equal in and propagate their gradients.
func (s *Scope) passed(in []*Var) []*Var {
	inner := s.list(len(in))
	for i, x := range in {
		s.keeps = s.keeps || x.KeepsBuffers()
		inner[i] = passed(s.newVar(), x)
	}
	return inner
}

// passed makes v equal to x, and propagates its gradient to x.
func passed(v, x *Var) *Var {
	v.op, v.t, v.quiet, v.needs = "Checkpoint", x.t, x.quiet, x.needs
	if v.needs {
		v.inputs, v.derive, v.again = append(v.inputRoom[:0], x), pass, same
	}
	return v
}

func pass(y *Var, dy *tensor.Tensor) { y.inputs[0].add(dy) }

// result returns the tensor of y, a value of an inner scope, for a value of s, which outlives it.
// Tensors that the inner scope owns are moved to s. Views and possible views are copied.
func (s *Scope) result(y *Var, inner *Scope, in []*Var) *tensor.Tensor {
	if s == nil || y.param != nil || slices.ContainsFunc(in, func(x *Var) bool { return x.t == y.t }) {
		return y.t
	}
	if inner.giveUp(y.t, mark{}) {
		s.made = append(s.made, y.t)
		return y.t
	}
	t := s.empty(y.t.Device(), y.t.DType(), y.t.Shape())
	if i := slices.Index(inner.lent, y.t); i >= 0 { // exchange them
		own := len(s.lent) - 1
		inner.lent[i], s.lent[own] = t, y.t
		return y.t
	}
	return t.CopyFrom(y.t)
}
