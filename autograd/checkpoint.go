package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Checkpoint returns f(in...) and keeps no value that f computes on the way: Backward and Grad call
// f once more when they need these values. It saves memory and costs time, as
// torch.utils.checkpoint does: a network of n layers, checkpointed in parts of √n layers, keeps the
// values of 2√n layers (Chen and others, 2016).
//
//	h = autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var { return block.Forward(in[0]) }, h)
//
// f must compute the same result from equal arguments each time. It may use Params, and other
// values that live until Backward. The second call draws the same random numbers from
// tensor.DefaultGenerator as the first; for other generators see [CheckpointWith]. The second call
// does not update running statistics ([Scope.KeepBuffers]). The values of f are not in the Scope of
// in; the garbage collector frees them.
func Checkpoint(f func(in ...*Var) *Var, in ...*Var) *Var { return CheckpointWith(nil, f, in...) }

// CheckpointWith returns f(in...) as Checkpoint does, for an f that draws random numbers from
// generators besides the default one. No other goroutine may use the generators until Backward.
func CheckpointWith(generators []*tensor.Generator, f func(in ...*Var) *Var, in ...*Var) *Var {
	r := recompute{generators}
	for i, x := range in {
		if x == nil || x.t == nil {
			misuse("Checkpoint of input %d, which is nil, or was in a Scope that was Reset", i)
		}
	}
	in = slices.Clone(in)
	begin := r.states()
	y := f(within(false, in)...)
	v := scopeOf(in).newVar()
	v.op, v.t, v.quiet = "Checkpoint", y.t, y.quiet
	if !y.needs {
		return v
	}
	v.needs, v.inputs = true, in
	for _, x := range in {
		v.save(x.t)
	}
	v.redo = func() *Var {
		defer r.set(r.states())
		r.set(begin)
		again := f(within(true, in)...)
		if !sameShape(again.Shape(), v.Shape()) {
			misuse("Checkpoint of a function that made a value of shape %v, and now one of %v: it must compute the same each time", v.Shape(), again.Shape())
		}
		return passed(new(Var), again)
	}
	return v
}

// within returns values like those of in, in a scope of their own.
func within(keeps bool, in []*Var) []*Var {
	s := NewScope()
	s.keeps = keeps
	inner := make([]*Var, len(in))
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

// A recompute is the generators that a function draws from, beside the default one.
type recompute struct{ generators []*tensor.Generator }

// states returns where the generators are, the default one first.
func (r recompute) states() [][]byte {
	all := [][]byte{tensor.DefaultGenerator().State()}
	for _, g := range r.generators {
		all = append(all, g.State())
	}
	return all
}

func (r recompute) set(states [][]byte) {
	for i, g := range append([]*tensor.Generator{tensor.DefaultGenerator()}, r.generators...) {
		if err := g.SetState(states[i]); err != nil {
			panic(err) // a state of a generator
		}
	}
}

// splice puts what a function computes now in v's place, in the middle of a walk.
func (w *walk) splice(v *Var, compute func() *Var) {
	v.checkSaved()
	y := compute()
	w.ready = append(w.ready, y)
	if w.seen != nil {
		w.limit(y)
	}
	w.count(y)
	if v.slope != nil {
		y.gain(v.slope)
	} else {
		y.add(v.grad)
	}
}
