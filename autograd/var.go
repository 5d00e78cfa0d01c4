package autograd

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Var is a value in a graph: a tensor, and how it was computed if it needs a gradient. Operations
// return new Vars. A Var belongs to one goroutine. It does not travel to other processes; a Param
// does.
type Var struct {
	passing
	t      *tensor.Tensor
	param  *Param // of a leaf
	scope  *Scope
	needs  bool // a Param is among what v was computed from
	quiet  bool // see NoGrad
	walked bool
	lent   bool // t belongs to the scope

	op       string
	backward func(dy *tensor.Tensor) // gives each input its part
	derive   derivation              // the same, of operations that make no closure for it
	again    rule                    // the same of gradients that are values themselves
	plain    func(v *Var) *Var       // for what has no such rule: computes the value by operations that have one
	redo     func(v *Var) *Var       // computes the value again, see Checkpoint
	hooks    *hooks
	note     note
	plan     *plan
	inputs   []*Var
	saved    []saved

	inputRoom [4]*Var // so that most operations need no slice of their own
	savedRoom [6]saved
}

// A passing is what Backward and Grad note of a value while they run.
type passing struct {
	grad    *tensor.Tensor
	slope   *Var   // under CreateGraph, in the place of grad
	part    *Scope // the inner scope that ends when the value and all others of it are walked
	mark    uint64 // of the walk to some inputs that has looked at it
	waiting int    // uses of it that have not been walked yet
	asked   bool   // its gradient is one of those that Grad returns
	idle    bool   // it does not lead to one
}

// A derivation gives the inputs of y their part of the gradient dy. It finds what it needs in y:
// operations on the path of training would otherwise allocate a closure at every step.
type derivation func(y *Var, dy *tensor.Tensor)

// A note is the numbers that a derivation needs.
type note struct {
	run       int
	factor    float64
	limits    [2]float64
	dims      axes
	place     [4]int
	gate      kernel.Gate
	slab      slab
	pick      picker
	backwards bool
}

// A plan is what derivations of few operations need, which would make each Var large.
type plan struct {
	conv      kernel.ConvShape
	window    Window
	norm      kernel.Norm
	weighted  bool // norm has a weight
	groups    groups
	padding   padding
	unlearned []int64 // the rows of an embedding's padding
	pool      averaged
	attention Attention
	heads     kernel.Attention
	again     recompute
}

// plans returns v's plan. A scope uses it again with v.
func (v *Var) plans() *plan {
	if v.plan == nil {
		v.plan = new(plan)
	}
	return v.plan
}

// input returns an input, or nil where there are fewer.
func (v *Var) input(i int) *Var {
	if i < len(v.inputs) {
		return v.inputs[i]
	}
	return nil
}

// Const returns t as a value that needs no gradient, such as a batch or a target. t must stay open
// and unchanged until Backward, which panics if it sees a change.
func Const(t *tensor.Tensor) *Var { return &Var{t: t} }

// NoGrad returns t as a value whose operations are not recorded. A result computed from it, with
// any parameters, has no gradient and keeps no values for one. torch.no_grad() is a switch of a
// thread; a goroutine has no such switch, so here the input of the network carries it.
//
//	logits := net.Forward(autograd.NoGrad(images))
func NoGrad(t *tensor.Tensor) *Var { return &Var{t: t, quiet: true} }

// T returns the tensor of the value. It belongs to the graph: if the program changes it before
// Backward and a gradient needs it, Backward panics.
func (v *Var) T() *tensor.Tensor { return v.t }

// Item returns the value of a Var of one element, such as a loss.
func (v *Var) Item() float64 { return v.t.Item() }

// Shape returns the shape of the value. Do not change the slice.
func (v *Var) Shape() []int { return v.t.Shape() }

// Grad returns the gradient of a Leaf, and the Grad of a Param for its Var. For other values it
// returns nil, since Backward does not keep their gradients.
func (v *Var) Grad() *tensor.Tensor {
	if v.param == nil {
		return nil
	}
	return v.param.Grad
}

// KeepsBuffers reports whether layers leave their running statistics unchanged, as
// [Scope.KeepBuffers] asks.
func (v *Var) KeepsBuffers() bool { return v.scope != nil && v.scope.keeps }

// RequiresGrad reports whether v depends on a Param that is not frozen, or on a Leaf.
func (v *Var) RequiresGrad() bool { return v.needs }

// Detach returns a Var of the same tensor without its graph, so no gradient flows through it.
func (v *Var) Detach() *Var {
	d := v.scope.newVar()
	d.t, d.quiet = v.t, v.quiet
	return d
}

// result returns the Var of an operation's output, whose elements are anything. If it needs a
// gradient, the operation sets backward.
func result(op string, dt tensor.DType, shape []int, inputs ...*Var) *Var {
	v := scopeOf(inputs).newVar()
	v.from(op, inputs)
	v.t = v.scope.empty(inputs[0].t.Device(), dt, shape)
	v.lent = v.scope != nil && len(shape) <= maxDims
	return v
}

// wrap is result for a tensor that exists. Nobody else may have it.
func wrap(op string, t *tensor.Tensor, inputs ...*Var) *Var {
	v := scopeOf(inputs).newVar()
	v.from(op, inputs)
	v.t = t
	return v
}

// made is wrap for a tensor that an operation of package tensor has just made. A scope closes it at
// Reset, so that its memory is there for the next step.
func made(op string, t *tensor.Tensor, inputs ...*Var) *Var {
	v := wrap(op, t, inputs...)
	v.own(t)
	return v
}

// from records what v is computed from. Nil inputs, such as a bias that is not there, are left out.
func (v *Var) from(op string, inputs []*Var) {
	v.op, v.inputs, v.saved = op, v.inputRoom[:0], v.savedRoom[:0]
	if len(inputs) > len(v.inputRoom) {
		v.inputs = v.scope.list(len(inputs))[:0]
	}
	var dt tensor.DType
	var first *tensor.Tensor
	for i, in := range inputs {
		if in == nil {
			continue
		}
		if i > 0 && in.t.DType() != dt {
			misuse(tensor.ErrOperand, "%s of %v and %v: want one dtype, as PyTorch does; convert one with tensor.To", op, dt, in.t.DType())
		}
		if first == nil {
			first = in.t
		} else if in.t.Device() != first.Device() {
			tensors.Computer(first, in.t) // panics unless one is a number
		}
		dt = in.t.DType()
		v.quiet = v.quiet || in.quiet
		v.needs = v.needs || in.needs
		v.inputs = append(v.inputs, in)
	}
	if v.quiet || !v.needs {
		v.needs, v.inputs = false, nil
		clear(v.inputRoom[:])
	}
}

// scopeOf returns the scope of a result: the first one of its inputs, or the innermost, as nothing
// may outlive that.
func scopeOf(inputs []*Var) (s *Scope) {
	for _, in := range inputs {
		if in != nil && in.scope != nil && (s == nil || in.scope.depth > s.depth) {
			s = in.scope
		}
	}
	return s
}

// A saved is a tensor that a gradient is computed from, and how it was when it was saved.
type saved struct {
	t       *tensor.Tensor
	version uint64
}

// save remembers tensors that v's backward will read.
func (v *Var) save(ts ...*tensor.Tensor) {
	for _, t := range ts {
		v.saved = append(v.saved, saved{t, t.Version()})
	}
}

// reads is save, if v needs a gradient, of tensors that its rule reads.
func (v *Var) reads(ts ...*tensor.Tensor) *Var {
	if v.needs {
		v.save(ts...)
	}
	return v
}

func (v *Var) checkSaved() {
	for _, s := range v.saved {
		if now := s.t.Version(); now != s.version {
			misuse(tensor.ErrMisuse, "%s needs a tensor of shape %v as it was, but it was changed in place since (version %d, saved at %d): "+
				"call Backward first, or change a Clone; to train a tensor several at a time, use processes, not goroutines",
				v.op, s.t.Shape(), now, s.version)
		}
	}
}

// dense returns v's tensor if it is contiguous and otherwise a copy that is.
func (v *Var) dense() *tensor.Tensor {
	if v.t.IsContiguous() {
		return v.t
	}
	return v.own(v.t.Clone())
}

// misuse panics with an error that wraps kind: tensor.ErrMisuse, or an error that wraps it.
func misuse(kind error, format string, args ...any) {
	panic(fmt.Errorf("autograd: %s%.0w", fmt.Sprintf(format, args...), kind))
}
