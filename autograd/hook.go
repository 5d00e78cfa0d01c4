package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A hook is a function that waits for gradients, until it is removed.
type hook struct {
	see  func(grad *Var) *Var
	call func(p *Param)
	of   *hooks
}

// remove lets the hook wait no longer. It is idempotent.
func (h *hook) remove() {
	h.of.before, h.of.after = without(h.of.before, h), without(h.of.after, h)
}

// without returns a new list, since a walk may be reading the old one.
func without(list []*hook, h *hook) []*hook {
	return slices.DeleteFunc(slices.Clone(list), func(x *hook) bool { return x == h })
}

// hooks are those of a value or a Param.
type hooks struct {
	before []*hook // the gradient is used
	after  []*hook // it was added to the Param's Grad
}

func (h *hooks) add(to *[]*hook, hook *hook) (remove func()) {
	hook.of = h
	*to = append(slices.Clip(*to), hook)
	return hook.remove
}

// RegisterHook registers f, which each Backward and Grad calls with the complete gradient of v
// before using it. If f returns a value, which has the gradient's shape, it replaces the gradient;
// nil keeps the gradient. Hooks are called in the order of their registration, each with the result
// of the one before. A hook of a Param's Var is a hook of the Param.
//
// Operations of f on the gradient are recorded only under Grad with CreateGraph. In a Scope the
// gradient's tensor is valid until the walk ends: Clone a tensor that must stay.
//
// remove unregisters f. It may be called more than once.
//
//	h.RegisterHook(func(g *autograd.Var) *autograd.Var { return autograd.Clamp(g, -1, 1) })
func (v *Var) RegisterHook(f func(grad *Var) *Var) (remove func()) {
	if v.param != nil {
		return v.param.RegisterHook(f)
	}
	if !v.needs {
		misuse(tensor.ErrMisuse, "RegisterHook of a value that needs no gradient: it comes from Const, NoGrad or frozen parameters only")
	}
	if v.hooks == nil {
		v.hooks = new(hooks)
	}
	return v.hooks.add(&v.hooks.before, &hook{see: f})
}

// RegisterHook registers f, which each Backward calls with the gradient before adding it to Grad,
// as [Var.RegisterHook] says. A hook belongs to this process and does not travel with the Param.
func (p *Param) RegisterHook(f func(grad *Var) *Var) (remove func()) {
	return p.hooks.add(&p.hooks.before, &hook{see: f})
}

// RegisterPostAccumulateGradHook registers f, which each Backward calls when p.Grad is complete,
// while the walk to other parameters goes on. So f may begin an optimizer's step of p, or a
// reduction of p.Grad over ranks. f may change or drop p.Grad. The function Grad does not call f.
// remove unregisters f. A hook belongs to this process and does not travel with the Param.
func (p *Param) RegisterPostAccumulateGradHook(f func(p *Param)) (remove func()) {
	return p.hooks.add(&p.hooks.after, &hook{call: f})
}

// watchers returns the hooks that see v's gradient.
func (v *Var) watchers() []*hook {
	switch {
	case v.param != nil:
		return v.param.hooks.before
	case v.hooks != nil:
		return v.hooks.before
	}
	return nil
}

// show lets hooks see v's gradient and replace it.
func (v *Var) show(hooks []*hook, w *walk) {
	for _, h := range hooks {
		switch {
		case w.graph && v.slope != nil:
			if g := h.see(v.slope); g != nil {
				checkReplaced(v, g)
				v.slope = g
			}
		case v.grad != nil:
			if g := h.see(v.scope.NoGrad(v.grad)); g != nil {
				checkReplaced(v, g)
				v.grad = v.room().CopyFrom(g.t) // g may be anybody's
			}
		}
	}
}

func checkReplaced(v, g *Var) {
	if !sameShape(g.Shape(), v.Shape()) {
		misuse(tensor.ErrShape, "a hook returns a gradient of shape %v for a value of shape %v: they must be equal; nil leaves it as it is", g.Shape(), v.Shape())
	}
}

// arrive adds what a Param's hooks have seen to its Grad, and calls those that wait for that. In a
// walk that calls functions once more they are called at its end, since a function may use a Param
// of which the walk knows no other use.
func (v *Var) arrive(w *walk) {
	if v.asked {
		return
	}
	if v.grad != nil {
		v.param.gradient().Add(v.grad)
	}
	switch {
	case len(v.param.hooks.after) == 0:
	case !w.redoes:
		v.param.arrived()
	case !slices.Contains(w.arrived, v.param):
		w.arrived = append(w.arrived, v.param)
	}
}

func (p *Param) arrived() {
	for _, h := range p.hooks.after {
		h.call(p)
	}
}
