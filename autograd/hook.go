package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A hook is a registered function: see for gradients, or call for Params with a complete Grad. It
// belongs to the hooks of.
type hook struct {
	see  func(grad *Var) *Var
	call func(p *Param)
	of   *hooks
}

// remove unregisters the hook. It is idempotent.
func (h *hook) remove() {
	h.of.before, h.of.after = removeHook(h.of.before, h), removeHook(h.of.after, h)
}

// removeHook returns list without h, as a new list, because a walk may be reading the old one.
func removeHook(list []*hook, h *hook) []*hook {
	return slices.DeleteFunc(slices.Clone(list), func(x *hook) bool { return x == h })
}

// hooks contains the hooks of a value or a Param.
type hooks struct {
	before []*hook // called before the gradient is used
	after  []*hook // called after it was added to the Param's Grad
}

func (h *hooks) add(to *[]*hook, hook *hook) (remove func()) {
	hook.of = h
	*to = append(slices.Clip(*to), hook)
	return hook.remove
}

// RegisterHook registers f to be called by each Backward and Grad with the complete gradient of v
// before it is used. f may return a value that replaces the gradient, which must have the same
// shape; nil keeps the gradient. Hooks are called in the order of registration, each with the
// result of the previous one. A hook of a Param's Var is a hook of the Param.
//
// Operations of f on the gradient are recorded only under [Grad] with CreateGraph. In a Scope the
// gradient's tensor is valid until the walk ends; f must clone it to keep it.
//
// remove unregisters f. It is idempotent.
//
//	h.RegisterHook(func(g *autograd.Var) *autograd.Var { return autograd.Clamp(g, -1, 1) })
func (v *Var) RegisterHook(f func(grad *Var) *Var) (remove func()) {
	if v.param != nil {
		return v.param.RegisterHook(f)
	}
	if !v.needs {
		misuse(tensor.ErrMisuse, "RegisterHook of a value that needs no gradient, because it depends only on "+
			"Const, NoGrad or frozen parameters")
	}
	if v.hooks == nil {
		v.hooks = new(hooks)
	}
	return v.hooks.add(&v.hooks.before, &hook{see: f})
}

// RegisterHook registers f to be called by each Backward with the gradient before it is added to
// Grad; see [Var.RegisterHook]. A hook is local to this process and is not sent with the Param.
func (p *Param) RegisterHook(f func(grad *Var) *Var) (remove func()) {
	return p.hooks.add(&p.hooks.before, &hook{see: f})
}

// RegisterPostAccumulateGradHook registers f to be called by each Backward when p.Grad is complete,
// before Backward has processed all other parameters. f may, for example, start an optimizer step
// for p or a reduction of p.Grad over ranks. f may change or drop p.Grad. The function [Grad] does
// not call f. remove unregisters f. A hook is local to this process and is not sent with the Param.
func (p *Param) RegisterPostAccumulateGradHook(f func(p *Param)) (remove func()) {
	return p.hooks.add(&p.hooks.after, &hook{call: f})
}

// activeHooks returns the hooks that are called with v's gradient.
func (v *Var) activeHooks() []*hook {
	switch {
	case v.param != nil:
		return v.param.hooks.before
	case v.hooks != nil:
		return v.hooks.before
	}
	return nil
}

// callHooks calls the hooks in order with v's gradient, and replaces the gradient by each result
// that is not nil. It panics with [tensor.ErrShape] if a result has another shape than v.
func (v *Var) callHooks(hooks []*hook, w *walk) {
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
				v.grad = v.newEmptyLike().CopyFrom(g.t) // copy, because others may refer to g
			}
		}
	}
}

func checkReplaced(v, g *Var) {
	if !sameShape(g.Shape(), v.Shape()) {
		misuse(tensor.ErrShape, "hook returned a gradient of shape %v, want %v as the value, or nil to keep the "+
			"gradient",
			g.Shape(), v.Shape())
	}
}

// deliverParam adds the gradient of a Param with hooks to its Grad, and calls the hooks that wait
// for it. In a walk that calls functions again, it defers the hooks to the end, because a function
// may use a Param without the walk's knowledge.
func (v *Var) deliverParam(w *walk) {
	if v.asked {
		return
	}
	if v.grad != nil {
		v.param.gradient().AddInPlace(v.grad)
	}
	switch {
	case len(v.param.hooks.after) == 0:
	case !w.redoes:
		v.param.callAfterHooks()
	case !slices.Contains(w.arrived, v.param):
		w.arrived = append(w.arrived, v.param)
	}
}

func (p *Param) callAfterHooks() {
	for _, h := range p.hooks.after {
		h.call(p)
	}
}
