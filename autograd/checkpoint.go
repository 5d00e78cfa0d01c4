package autograd

import "github.com/shoal-mp/shoal/tensor"

// Checkpoint returns f(in...) without storing the intermediate values: Backward and Grad call f
// again when they need them. Like torch.utils.checkpoint, it trades time for memory: a network of n
// layers, checkpointed in parts of √n layers, stores the values of 2√n layers (Chen et al., 2016).
//
//	h = autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var { return block.Forward(in[0]) }, h)
//
// f must compute the same result from equal arguments each time. It may use Params, and other
// values that live until Backward. The second call draws the same random numbers from
// tensor.DefaultGenerator as the first; for other generators see [CheckpointWith]. The second call
// does not update running statistics ([Scope.KeepBuffers]).
//
// If in is in a Scope, the values that f computes are in a scope of their own, and their memory is
// reused by the next function as soon as they are no longer needed. After f has returned, the
// program must not use these values or their tensors, except for the result. Without a Scope the
// garbage collector frees them.
func Checkpoint(f func(in ...*Var) *Var, in ...*Var) *Var { return CheckpointWith(nil, f, in...) }

// CheckpointWith is like [Checkpoint], for an f that draws random numbers from other generators
// than the default one. Other goroutines must not use the generators until Backward.
func CheckpointWith(generators []*tensor.Generator, f func(in ...*Var) *Var, in ...*Var) *Var {
	for i, x := range in {
		if x == nil || x.t == nil {
			misuse(tensor.ErrMisuse, "Checkpoint: input %d is nil or its Scope was Reset", i)
		}
	}
	s := scopeOf(in)
	v := s.newVar()
	r := &v.ensurePlan().again
	r.f, r.generators = f, append(r.generators[:0], generators...)
	r.begin = r.appendStates(r.begin[:0])
	inner := s.openInner()
	y := f(inner.passInputs(in)...)
	v.op, v.quiet, v.t = "Checkpoint", y.quiet, s.outerTensor(y, inner, in)
	if v.needs = y.needs; v.needs {
		v.inputs, v.saved, v.redo = s.newVarList(len(in)), r.saved[:0], recomputeValue
		copy(v.inputs, in)
		for _, x := range in {
			v.saveTensors(x.t)
		}
		r.saved = v.saved
	}
	inner.reclaimInner()
	return v
}

// A recompute contains a checkpointed function, its generators other than the default one, and the
// generators' states, with the default generator first.
type recompute struct {
	f          func(in ...*Var) *Var
	generators []*tensor.Generator
	begin, now []byte
	saved      []saved // tensors of the inputs
}

// cleared returns an empty recompute that reuses the memory of r.
func (r recompute) cleared() recompute {
	return recompute{generators: clearList(r.generators), begin: r.begin[:0], now: r.now[:0], saved: clearList(r.saved)}
}

// recomputeValue calls the function of v, a value of CheckpointWith, again, and returns its
// result, which propagates gradients to v's inputs. It panics with [tensor.ErrMisuse] if the
// result has another shape than v.
func recomputeValue(v *Var) *Var {
	r := &v.plan.again
	r.now = r.appendStates(r.now[:0])
	defer r.restoreStates(r.now)
	r.restoreStates(r.begin)
	inner := v.scope.openInner()
	inner.keeps = true
	again := r.f(inner.passInputs(v.inputs)...)
	if !sameShape(again.Shape(), v.Shape()) {
		misuse(tensor.ErrMisuse, "Checkpoint: the function returned shape %v at first and %v now: it must compute "+
			"the same each time",
			v.Shape(), again.Shape())
	}
	return passValue(inner.newVar(), again)
}

// appendStates appends the states of all generators, with the default generator first, to to.
func (r *recompute) appendStates(to []byte) []byte {
	to = append(to, tensor.DefaultGenerator().State()...)
	for _, g := range r.generators {
		to = append(to, g.State()...)
	}
	return to
}

func (r *recompute) restoreStates(states []byte) {
	size := len(states) / (1 + len(r.generators))
	setState(tensor.DefaultGenerator(), states[:size])
	for i, g := range r.generators {
		setState(g, states[(1+i)*size:(2+i)*size])
	}
}

func setState(g *tensor.Generator, state []byte) {
	if err := g.SetState(state); err != nil {
		panic(err) // cannot happen: it is a valid state
	}
}

// splice replaces v during a walk by the value that compute returns: this value gets v's
// gradient, and the walk continues at it.
func (w *walk) splice(v *Var, compute func(v *Var) *Var) {
	v.checkSaved()
	y := compute(v)
	if v.redo != nil && !w.graph {
		w.part = y.scope
	}
	w.trackInner(y)
	w.ready = append(w.ready, y)
	if w.mark != 0 {
		w.markIdle(y)
	}
	w.countUses(y)
	w.part = nil
	if v.slope != nil {
		y.addGradientValue(v.slope)
	} else {
		y.addGradient(v.grad)
	}
}
