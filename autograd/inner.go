package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// within returns a scope for the values of a function that a Checkpoint calls. It ends before s
// does, and is used again by the next function; one within no scope is the collector's.
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

// end takes back all memory of an inner scope, whose values nobody has any more.
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

// join notes that a walk has yet to come to v, on which the end of an inner scope depends.
func (w *walk) join(v *Var) {
	if v.part = w.part; v.part != nil {
		v.part.left++
	}
}

// walked ends an inner scope when all values have been walked on which that depends. These are not
// only its own: others may have been computed from the tensors of its values.
func (s *Scope) walked(v *Var) {
	if s == nil {
		return
	}
	v.part = nil
	if s.left--; s.left == 0 {
		s.end()
	}
}

// passed returns values of the scope that are those of in, and pass their gradients on.
func (s *Scope) passed(in []*Var) []*Var {
	inner := s.list(len(in))
	for i, x := range in {
		s.keeps = s.keeps || x.KeepsBuffers()
		inner[i] = passed(s.newVar(), x)
	}
	return inner
}

// passed makes v a value that is x, and passes its gradient on.
func passed(v, x *Var) *Var {
	v.op, v.t, v.quiet, v.needs = "Checkpoint", x.t, x.quiet, x.needs
	if v.needs {
		v.inputs, v.derive, v.again = append(v.inputRoom[:0], x), pass, same
	}
	return v
}

func pass(y *Var, dy *tensor.Tensor) { y.inputs[0].add(dy) }

// result returns the tensor of a value of an inner scope for one of s, which outlives that. What
// the inner scope owns becomes that of s. A view of it is copied, and so is what may be one.
func (s *Scope) result(y *Var, inner *Scope, in []*Var) *tensor.Tensor {
	if s == nil || y.param != nil || slices.ContainsFunc(in, func(x *Var) bool { return x.t == y.t }) {
		return y.t
	}
	if inner.giveUp(y.t, mark{}) {
		s.made = append(s.made, y.t)
		return y.t
	}
	t := s.empty(y.t.Device(), y.t.DType(), y.t.Shape())
	if i := slices.Index(inner.lent, y.t); i >= 0 { // they change places
		own := len(s.lent) - 1
		inner.lent[i], s.lent[own] = t, y.t
		return y.t
	}
	return t.CopyFrom(y.t)
}
