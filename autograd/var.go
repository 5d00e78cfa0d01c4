package autograd

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/internal/sentinel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Var is a value in a graph: a tensor, and a record of its computation if it requires a gradient.
// Operations return new Vars. A Var must be used by one goroutine only. It cannot be sent to other
// processes; a [Param] can.
type Var struct {
	passing
	t      *tensor.Tensor
	param  *Param // if it is a leaf
	scope  *Scope
	needs  bool // whether v depends on a Param
	quiet  bool // see NoGrad
	walked bool
	lent   bool // whether t belongs to the scope

	op       string
	backward func(dy *tensor.Tensor) // propagates the gradient to the inputs
	derive   derivation              // the same, without a closure
	again    rule                    // the same, for gradients that are values of a graph
	plain    func(v *Var) *Var       // recomputes the value from operations with rules
	redo     func(v *Var) *Var       // recomputes the value; see Checkpoint
	hooks    *hooks
	note     note
	plan     *plan
	inputs   []*Var
	saved    []saved

	inputRoom [4]*Var // avoids a slice for most operations
	savedRoom [6]saved
}

// A passing is the state of a value during Backward and Grad.
type passing struct {
	grad    *tensor.Tensor
	slope   *Var   // the gradient under CreateGraph, instead of grad
	part    *Scope // inner scope that ends when all of its values have been visited
	mark    uint64 // the last walk to selected inputs that visited it
	waiting int    // number of uses that have not contributed yet
	asked   bool   // whether Grad returns its gradient
	idle    bool   // whether it does not depend on a selected input
}

// A derivation propagates the gradient dy of y to the inputs of y. It finds its data in y, because
// a closure would be allocated at each training step.
type derivation func(y *Var, dy *tensor.Tensor)

// A note contains the parameters of a derivation.
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

// A plan contains larger parameters, which few derivations need. They would make every Var large.
type plan struct {
	conv      kernel.ConvShape
	window    Window
	norm      kernel.Norm
	weighted  bool // whether norm has a weight
	groups    groups
	padding   padding
	unlearned []int64 // padding rows of an embedding
	pool      averaged
	attention Attention
	heads     kernel.Attention
	again     recompute
}

// ensurePlan returns v's plan and creates it if necessary. A scope reuses it together with v.
func (v *Var) ensurePlan() *plan {
	if v.plan == nil {
		v.plan = new(plan)
	}
	return v.plan
}

// inputAt returns input i, or nil if there are fewer inputs.
func (v *Var) inputAt(i int) *Var {
	if i < len(v.inputs) {
		return v.inputs[i]
	}
	return nil
}

// Const returns t as a value that requires no gradient, such as a batch or a target. t must stay
// open and unchanged until Backward, which panics if it detects a change.
func Const(t *tensor.Tensor) *Var { return &Var{t: t} }

// NoGrad returns t as a value with unrecorded operations. A result computed from it, with any
// parameters, has no gradient and stores no values for one. In PyTorch, torch.no_grad() is a
// property of a thread; goroutines have no such state, so here the input of the network carries it.
//
//	logits := net.Forward(autograd.NoGrad(images))
func NoGrad(t *tensor.Tensor) *Var { return &Var{t: t, quiet: true} }

// T returns the tensor of the value. It belongs to the graph: the program must not change it before
// Backward. Backward panics if a gradient needs the previous elements.
func (v *Var) T() *tensor.Tensor { return v.t }

// Item returns the only element of the value, such as a loss. It panics if there are more.
func (v *Var) Item() float64 { return v.t.Item() }

// Shape returns the shape of the value. The caller must not modify the slice.
func (v *Var) Shape() []int { return v.t.Shape() }

// Grad returns the gradient of a [Leaf], or the Grad of a Param for its Var. It returns nil
// before the first Backward and for other values, because Backward does not store their
// gradients.
func (v *Var) Grad() *tensor.Tensor {
	if v.param == nil {
		return nil
	}
	return v.param.Grad
}

// KeepsBuffers reports whether layers must not update their running statistics; see
// [Scope.KeepBuffers].
func (v *Var) KeepsBuffers() bool { return v.scope != nil && v.scope.keeps }

// RequiresGrad reports whether v depends on a [Leaf] or on a Param that is not frozen.
func (v *Var) RequiresGrad() bool { return v.needs }

// Detach returns a Var with the same tensor but without its graph, so that no gradient flows
// through it.
func (v *Var) Detach() *Var {
	d := v.scope.newVar()
	d.t, d.quiet = v.t, v.quiet
	return d
}

// newResult returns the Var of an operation's output with uninitialized elements, on the device
// of the first input. It panics as recordOp does. If it needs a gradient, the operation must set
// a derivation.
func newResult(op string, dt tensor.DType, shape []int, inputs ...*Var) *Var {
	v := scopeOf(inputs).newVar()
	v.recordOp(op, inputs)
	v.t = v.scope.newEmpty(inputs[0].t.Device(), dt, shape)
	v.lent = v.scope != nil && len(shape) <= maxDims
	return v
}

// wrapResult is like newResult, for an existing tensor. No other code may have a reference to t.
func wrapResult(op string, t *tensor.Tensor, inputs ...*Var) *Var {
	v := scopeOf(inputs).newVar()
	v.recordOp(op, inputs)
	v.t = t
	return v
}

// wrapOwned is like wrapResult, for a new result of package tensor. A scope closes it at Reset, so
// that its memory can be reused.
func wrapOwned(op string, t *tensor.Tensor, inputs ...*Var) *Var {
	v := wrapResult(op, t, inputs...)
	v.ownTensor(t)
	return v
}

// recordOp records the operation and its inputs. It skips nil inputs, such as a missing bias. It
// panics with [tensor.ErrOperand] if the dtypes of the inputs differ, and with
// [tensor.ErrDevices] if they are on different devices.
func (v *Var) recordOp(op string, inputs []*Var) {
	v.op, v.inputs, v.saved = op, v.inputRoom[:0], v.savedRoom[:0]
	if len(inputs) > len(v.inputRoom) {
		v.inputs = v.scope.newVarList(len(inputs))[:0]
	}
	var dt tensor.DType
	var first *tensor.Tensor
	for i, in := range inputs {
		if in == nil {
			continue
		}
		if i > 0 && in.t.DType() != dt {
			misuse(tensor.ErrOperand, "%s: dtypes %v and %v differ: convert one with tensor.To, as in PyTorch",
				op, dt, in.t.DType())
		}
		if first == nil {
			first = in.t
		} else if in.t.Device() != first.Device() {
			tensors.Computer(first, in.t) // panics unless one is a scalar
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

// scopeOf returns the innermost scope of the inputs, because results must not outlive it, or nil
// if no input has a scope. Inputs may be nil.
func scopeOf(inputs []*Var) (s *Scope) {
	for _, in := range inputs {
		if in != nil && in.scope != nil && (s == nil || in.scope.depth > s.depth) {
			s = in.scope
		}
	}
	return s
}

// A saved is a tensor needed for a gradient, with its version when it was saved.
type saved struct {
	t       *tensor.Tensor
	version uint64
}

// saveTensors records tensors that v's derivation will read. checkSaved panics if one of them has
// been changed since.
func (v *Var) saveTensors(ts ...*tensor.Tensor) {
	for _, t := range ts {
		v.saved = append(v.saved, saved{t, t.Version()})
	}
}

// saveIfNeeded is like saveTensors, but does nothing if v needs no gradient. It returns v.
func (v *Var) saveIfNeeded(ts ...*tensor.Tensor) *Var {
	if v.needs {
		v.saveTensors(ts...)
	}
	return v
}

func (v *Var) checkSaved() {
	for _, s := range v.saved {
		if now := s.t.Version(); now != s.version {
			misuse(tensor.ErrMisuse, "%s: saved tensor of shape %v was modified in place (version %d, saved at %d): "+
				"call Backward first, or modify a Clone; to train a tensor concurrently, use processes, not goroutines",
				v.op, s.t.Shape(), now, s.version)
		}
	}
}

// contiguousTensor returns v's tensor, or a copy that belongs to v's scope if it is not
// contiguous.
func (v *Var) contiguousTensor() *tensor.Tensor {
	if v.t.IsContiguous() {
		return v.t
	}
	return v.ownTensor(v.t.Clone())
}

// misuse panics with an error that wraps kind, which must be tensor.ErrMisuse or wrap it.
func misuse(kind error, format string, args ...any) {
	panic(sentinel.New("autograd: "+fmt.Sprintf(format, args...), kind))
}
