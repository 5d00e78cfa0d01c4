package autograd

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// GradOptions are the options of [Grad]. With the zero value, outputs must have one element, and
// the graph is released.
type GradOptions struct {
	// GradOutputs contains the gradient with respect to each output, which must have the output's
	// shape. nil means 1, for outputs with one element.
	GradOutputs      []*Var
	RetainGraph      bool // keep the saved values, so that the graph can be traversed again
	CreateGraph      bool // return differentiable derivatives; implies RetainGraph
	AllowUnused      bool // return nil instead of panicking for an input that no output depends on
	MaterializeGrads bool // return zeros instead of panicking for an unused input
}

// ErrCreateGraph is wrapped by the panic of [Grad] with CreateGraph if the derivative of an
// operation is not differentiable. The text names the operation.
var ErrCreateGraph = errors.New("no second derivative")

// Register the error, so that errors.Is matches it in the process that started the worker.
func init() {
	codec.RegisterError("autograd.ErrCreateGraph", ErrCreateGraph)
}

// Grad returns the derivatives of the sum of outputs with respect to inputs, in the order and with
// the shapes of inputs. It does not change the Grad of a Param. An input may be any value that the
// outputs depend on: a Leaf, a Param's Var, or an intermediate value. Grad traverses only the part
// of the graph between inputs and outputs.
//
//	dx := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
//	penalty := autograd.Mean(autograd.Pow(autograd.AddScalar(autograd.Norm(dx, 1), -1), 2))
//
// With CreateGraph the derivatives are values of a graph and can be differentiated. Without it they
// are constants. In a Scope, they and the slice are valid until Reset.
//
// Grad panics under the same conditions as [Var.Backward], if shapes differ, and if no output
// depends on an input. With CreateGraph it panics with an error that wraps [ErrCreateGraph] if the
// derivative of an operation is not differentiable.
func Grad(outputs, inputs []*Var, o GradOptions) []*Var {
	o.check(outputs, inputs)
	s := scopeOf(outputs)
	w := walk{trail: s.acquireTrail(), retain: o.RetainGraph || o.CreateGraph, graph: o.CreateGraph, mark: marks.Add(1)}
	top := s.newVar()
	top.op, top.inputs, top.needs = "Grad", s.newVarList(len(outputs)), true
	copy(top.inputs, outputs)
	defer w.releaseState(top)
	for _, x := range inputs {
		w.markVisited(x)
		x.asked, x.mark = true, 0 // markIdle visits it
	}
	w.markIdle(top)
	w.countUses(top)
	for i, y := range outputs {
		o.seedGradient(&w, i, y)
	}
	w.recordContribution(top)
	w.propagateAll()
	return o.computeGradients(s, inputs)
}

// marks generates the marks of walks to selected inputs.
var marks atomic.Uint64

// check panics unless the options, outputs and inputs are valid.
func (o GradOptions) check(outputs, inputs []*Var) {
	if len(outputs) == 0 || len(inputs) == 0 {
		misuse(tensor.ErrMisuse, "Grad: got %d outputs and %d inputs, want at least 1 of each",
			len(outputs), len(inputs))
	}
	if o.GradOutputs != nil && len(o.GradOutputs) != len(outputs) {
		misuse(tensor.ErrMisuse, "Grad: got %d outputs and %d GradOutputs, want one for each output, or nil",
			len(outputs), len(o.GradOutputs))
	}
	for i, y := range outputs {
		y.checkRoot("Grad")
		if dy := o.outputGradient(i); dy != nil {
			checkGradientOf("Grad", y, dy.t)
		} else if y.t.Numel() != 1 {
			misuse(tensor.ErrShape, "Grad: output %d has shape %v, want a single number: set GradOutputs, or take "+
				"its Sum",
				i, y.Shape())
		}
	}
	for i, x := range inputs {
		if x.t == nil {
			misuse(tensor.ErrMisuse, "Grad: the Scope of input %d was Reset", i)
		}
		if !x.needs {
			misuse(tensor.ErrMisuse, "Grad: input %d of shape %v needs no gradient: make it a Leaf, or a Param "+
				"that is not frozen",
				i, x.Shape())
		}
	}
}

func (o GradOptions) outputGradient(i int) *Var {
	if o.GradOutputs == nil {
		return nil
	}
	return o.GradOutputs[i]
}

// seedGradient adds the initial gradient of output i, y: its element of GradOutputs, or 1.
func (o GradOptions) seedGradient(w *walk, i int, y *Var) {
	dy := o.outputGradient(i)
	switch {
	case !y.needsGradient():
	case w.graph && dy == nil:
		y.addGradientValue(y.scope.Const(y.unitGradient()))
	case w.graph:
		y.addGradientValue(dy)
	case dy == nil:
		one := y.unitGradient()
		y.addGradient(one)
		y.scope.recycleTensor(one)
	default:
		y.addGradient(dy.t)
	}
}

// computeGradients returns the gradients of the inputs after the walk, in a list of s. For an
// unused input, it panics with [tensor.ErrMisuse] or returns zeros or nil, as the options
// specify.
func (o GradOptions) computeGradients(s *Scope, inputs []*Var) []*Var {
	all := s.newVarList(len(inputs))
	for i, x := range inputs {
		switch {
		case x.slope != nil:
			all[i] = makeContiguous(x.slope)
		case x.grad != nil:
			all[i] = x.scope.Const(x.grad)
		case o.MaterializeGrads:
			all[i] = x.scope.Const(x.newEmptyLike().Zero())
		case !o.AllowUnused:
			misuse(tensor.ErrMisuse, "Grad: no output depends on input %d of shape %v: set AllowUnused to get nil "+
				"for it, or MaterializeGrads to get zeros",
				i, x.Shape())
		}
	}
	return all
}

// markIdle sets idle for each value that top depends on but that does not depend on a selected
// input, so that the walk skips it. It uses an explicit stack: a value is finished when all of its
// inputs are.
func (w *walk) markIdle(top *Var) {
	w.markVisited(top)
	stack := append(w.visits, visit{v: top})
	for len(stack) > 0 {
		at := &stack[len(stack)-1]
		if n := at.v; at.next == len(n.inputs) {
			n.idle = !n.asked && !n.walked && !n.leadsToSelected()
			stack = stack[:len(stack)-1]
			continue
		}
		in := at.v.inputs[at.next]
		at.next++
		if in.needs && in.mark != w.mark {
			w.markVisited(in)
			stack = append(stack, visit{v: in})
		}
	}
	w.visits = stack
}

// A visit is an entry of markIdle's stack.
type visit struct {
	v    *Var
	next int // index of the next input
}

// leadsToSelected reports whether one of v's inputs depends on a selected input, or may do so.
func (v *Var) leadsToSelected() bool {
	return v.redo != nil || slices.ContainsFunc(v.inputs, (*Var).needsGradient)
}

// markVisited marks v and resets its state for this walk.
func (w *walk) markVisited(v *Var) {
	w.seen = append(w.seen, seen{v, v.passing})
	v.passing = passing{asked: v.asked && v.mark == 0, mark: w.mark}
}

// restoreVisited restores the state of all visited values. They may be part of an outer walk, if
// its function or hook called Grad.
func (w *walk) restoreVisited() {
	for _, s := range slices.Backward(w.seen) {
		s.v.passing = s.before
	}
}

// A seen is a value visited by a walk to selected inputs, and its previous state.
type seen struct {
	v      *Var
	before passing
}

// A rule returns the derivatives of y's inputs, in order, computed from the derivative dy of y, as
// differentiable values. A derivative is nil if the input has none. A rule may only read saved data
// of y and its inputs. Backward uses it too, with a dy that does not record operations, unless the
// operation has its own derivation.
type rule func(y, dy *Var) derivatives

// derivatives contains the derivatives of an operation's inputs: in few, or in many if there are
// more than three.
type derivatives struct {
	few  [3]*Var
	many []*Var
}

func derivativesOf(few ...*Var) (d derivatives) {
	copy(d.few[:], few)
	return d
}

// each calls f for each input that needs a derivative and has one.
func (d *derivatives) each(inputs []*Var, f func(in, dx *Var)) {
	all := d.many
	if all == nil {
		all = d.few[:]
	}
	for i, in := range inputs {
		if dx := all[i]; dx != nil && in.needsGradient() {
			f(in, dx)
		}
	}
}

// setRule sets the rule of v, if v needs a gradient, and returns v. CreateGraph panics at
// operations without a rule.
func (v *Var) setRule(r rule) *Var {
	if v.needs {
		v.again = r
	}
	return v
}

// setRecompute sets a function that recomputes v from operations with rules, and returns v. It
// serves CreateGraph, for kernels that would need a long rule.
func (v *Var) setRecompute(compute func(v *Var) *Var) *Var {
	if v.needs {
		v.plain = compute
	}
	return v
}

// propagateValues implements propagateGradient for gradients that are values of a graph. It
// panics with [ErrCreateGraph] if v has no rule.
func (v *Var) propagateValues() {
	v.checkSaved()
	if v.again == nil {
		panic(fmt.Errorf("autograd: the derivative of %s: %w: call Grad without CreateGraph, or compute the value "+
			"from other operations",
			v.op, ErrCreateGraph))
	}
	d := v.again(v, v.slope)
	d.each(v.inputs, (*Var).addGradientValue)
}

// addGradientValue adds dx, a gradient that is a value of a graph, to v's. It sums or broadcasts
// dx to v's shape.
func (v *Var) addGradientValue(dx *Var) {
	if !v.needsGradient() {
		return
	}
	if dx = sumTo(dx, v.Shape()); !sameShape(dx.Shape(), v.Shape()) {
		dx = Expand(dx, v.Shape()...)
	}
	if v.slope != nil {
		dx = Add(v.slope, dx)
	}
	v.slope = dx
}

// sumTo is reduceTo for differentiable values.
func sumTo(dx *Var, shape []int) *Var {
	if dims := broadcastDims(dx.Shape(), shape); dims != 0 {
		return Reshape(sumOver(dx, dims), shape...)
	}
	return dx
}

// constLike returns a number as a constant for operations with v.
func (v *Var) constLike(c float64) *Var { return v.wrapConst(v.t.Number(c)) }

// Leaf returns t as a value that requires a gradient but is not a parameter, such as an image.
// Backward adds the gradient to its [Var.Grad], and the function [Grad] returns it. t must stay
// open and unchanged until then.
func Leaf(t *tensor.Tensor) *Var { return (*Scope)(nil).Leaf(t) }

// Leaf returns t as a value of the scope that requires a gradient; see the function [Leaf]. The
// caller owns the gradient, also after Reset, so each Backward of a Leaf allocates one.
func (s *Scope) Leaf(t *tensor.Tensor) *Var {
	requireDifferentiable("Leaf", t)
	v := s.newVar()
	v.t, v.param, v.needs = t, &Param{Name: "leaf", T: t}, true
	return v
}
