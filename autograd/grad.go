package autograd

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// GradOptions are the options of Grad. The zero value is for outputs of one element, and uses the
// graph up.
type GradOptions struct {
	// for each output the gradient with respect to it, of its shape; nil: 1, for outputs of one
	// element
	GradOutputs      []*Var
	RetainGraph      bool // keep the saved values, so that the graph can be walked again
	CreateGraph      bool // make derivatives that can be derived again; implies RetainGraph
	AllowUnused      bool // return nil, and do not panic, for an input that no output depends on
	MaterializeGrads bool // return zeros, and do not panic, for an input that no output depends on
}

// ErrCreateGraph is wrapped by the panic of Grad with CreateGraph at an operation whose derivative
// cannot be derived again. The text names the operation.
var ErrCreateGraph = errors.New("it cannot be derived again")

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("autograd.ErrCreateGraph", ErrCreateGraph)
}

// Grad returns the derivatives of the sum of outputs with respect to inputs, in the order and of
// the shapes of inputs. It changes no Grad of a Param. An input is any value that the outputs were
// computed from: a Leaf, a Param's Var, or a value in between. Grad walks only the part of the
// graph between inputs and outputs.
//
//	dx := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
//	penalty := autograd.Mean(autograd.Pow(autograd.AddScalar(autograd.Norm(dx, 1), -1), 2))
//
// With CreateGraph the derivatives are values of a graph, with derivatives of their own. Without
// CreateGraph they are constants. In a Scope they live until Reset, and so does the slice.
//
// Grad panics where Backward does, if shapes differ, and if no output depends on an input. With
// CreateGraph it panics with an error that wraps ErrCreateGraph at an operation that cannot be
// derived again.
func Grad(outputs, inputs []*Var, o GradOptions) []*Var {
	o.check(outputs, inputs)
	s := scopeOf(outputs)
	w := walk{trail: s.takeTrail(), retain: o.RetainGraph || o.CreateGraph, graph: o.CreateGraph, mark: marks.Add(1)}
	top := s.newVar()
	top.op, top.inputs, top.needs = "Grad", s.list(len(outputs)), true
	copy(top.inputs, outputs)
	defer w.end(top)
	for _, x := range inputs {
		w.see(x)
		x.asked, x.mark = true, 0 // limit comes to it
	}
	w.limit(top)
	w.count(top)
	for i, y := range outputs {
		o.begin(&w, i, y)
	}
	w.settle(top)
	w.run()
	return o.derivatives(s, inputs)
}

// marks are those of the walks to some inputs.
var marks atomic.Uint64

// check panics unless derivatives of the outputs for the inputs can be asked for.
func (o GradOptions) check(outputs, inputs []*Var) {
	if len(outputs) == 0 || len(inputs) == 0 {
		misuse(tensor.ErrMisuse, "Grad of %d outputs for %d inputs: want at least one of each", len(outputs), len(inputs))
	}
	if o.GradOutputs != nil && len(o.GradOutputs) != len(outputs) {
		misuse(tensor.ErrMisuse, "Grad of %d outputs with %d GradOutputs: want one for each, or nil", len(outputs), len(o.GradOutputs))
	}
	for i, y := range outputs {
		y.checkRoot("Grad")
		if dy := o.output(i); dy != nil {
			checkGradientOf("Grad", y, dy.t)
		} else if y.t.Numel() != 1 {
			misuse(tensor.ErrShape, "Grad of output %d, of shape %v: only a single number has a gradient by itself; set GradOutputs, or take its Sum", i, y.Shape())
		}
	}
	for i, x := range inputs {
		if x.t == nil {
			misuse(tensor.ErrMisuse, "Grad for input %d, whose Scope was Reset", i)
		}
		if !x.needs {
			misuse(tensor.ErrMisuse, "Grad for input %d, of shape %v, which needs no gradient: make it a Leaf, or a Param that is not frozen", i, x.Shape())
		}
	}
}

func (o GradOptions) output(i int) *Var {
	if o.GradOutputs == nil {
		return nil
	}
	return o.GradOutputs[i]
}

// begin gives output i its gradient.
func (o GradOptions) begin(w *walk, i int, y *Var) {
	dy := o.output(i)
	switch {
	case !y.wanted():
	case w.graph && dy == nil:
		y.gain(y.scope.Const(y.one()))
	case w.graph:
		y.gain(dy)
	case dy == nil:
		one := y.one()
		y.add(one)
		y.scope.recycle(one)
	default:
		y.add(dy.t)
	}
}

// derivatives returns what has arrived at the inputs.
func (o GradOptions) derivatives(s *Scope, inputs []*Var) []*Var {
	all := s.list(len(inputs))
	for i, x := range inputs {
		switch {
		case x.slope != nil:
			all[i] = packed(x.slope)
		case x.grad != nil:
			all[i] = x.scope.Const(x.grad)
		case o.MaterializeGrads:
			all[i] = x.scope.Const(x.room().Zero())
		case !o.AllowUnused:
			misuse(tensor.ErrMisuse, "Grad for input %d, of shape %v, which no output was computed from: set AllowUnused to get nil for it, or MaterializeGrads to get zeros", i, x.Shape())
		}
	}
	return all
}

// limit marks as idle what top was computed from and what does not lead to one that is asked for.
// Then only what does is counted and walked. It needs no recursion: a value is done when all that
// it was computed from is.
func (w *walk) limit(top *Var) {
	w.see(top)
	stack := append(w.visits, visit{v: top})
	for len(stack) > 0 {
		at := &stack[len(stack)-1]
		if n := at.v; at.next == len(n.inputs) {
			n.idle = !n.asked && !n.walked && !n.leads()
			stack = stack[:len(stack)-1]
			continue
		}
		in := at.v.inputs[at.next]
		at.next++
		if in.needs && in.mark != w.mark {
			w.see(in)
			stack = append(stack, visit{v: in})
		}
	}
	w.visits = stack
}

// A visit is a value on the way of limit.
type visit struct {
	v    *Var
	next int // of its inputs
}

// leads reports whether one of v's inputs leads to what is asked for, or may do so.
func (v *Var) leads() bool { return v.redo != nil || slices.ContainsFunc(v.inputs, (*Var).wanted) }

// see marks v, and has it begin the walk with nothing of its own.
func (w *walk) see(v *Var) {
	w.seen = append(w.seen, seen{v, v.passing})
	v.passing = passing{asked: v.asked && v.mark == 0, mark: w.mark}
}

// unsee takes back what was marked, and what has arrived. Another walk may be under way there,
// whose function or hook has called Grad.
func (w *walk) unsee() {
	for _, s := range slices.Backward(w.seen) {
		s.v.passing = s.before
	}
}

// A seen is a value that a walk to some inputs has come to, and what another walk had noted of it.
type seen struct {
	v      *Var
	before passing
}

// A rule returns the derivatives of y's inputs, in their order, from dy, that of y, as values that
// can be derived again: nil for an input that has none. It reads of y and its inputs what was
// saved. Backward computes by it as well, with a dy whose operations are not recorded, unless the
// operation has a derivation of its own.
type rule func(y, dy *Var) derivatives

// derivatives are those of an operation's inputs: of three, or else of many.
type derivatives struct {
	few  [3]*Var
	many []*Var
}

func of(few ...*Var) (d derivatives) {
	copy(d.few[:], few)
	return d
}

// each calls f with each input that is wanted and its derivative, if there is one.
func (d *derivatives) each(inputs []*Var, f func(in, dx *Var)) {
	all := d.many
	if all == nil {
		all = d.few[:]
	}
	for i, in := range inputs {
		if dx := all[i]; dx != nil && in.wanted() {
			f(in, dx)
		}
	}
}

// twice sets the rule of a value, which operations without one do not have: those are refused by
// CreateGraph.
func (v *Var) twice(r rule) *Var {
	if v.needs {
		v.again = r
	}
	return v
}

// plainly sets how the value is computed by operations that have rules, which then have the
// derivatives of this one: for a kernel whose own rule would be long.
func (v *Var) plainly(compute func(v *Var) *Var) *Var {
	if v.needs {
		v.plain = compute
	}
	return v
}

// giveValues is give, of gradients that are values.
func (v *Var) giveValues() {
	v.checkSaved()
	if v.again == nil {
		panic(fmt.Errorf("autograd: the derivative of %s: %w: call Grad without CreateGraph, or compute the value of other operations",
			v.op, ErrCreateGraph))
	}
	d := v.again(v, v.slope)
	d.each(v.inputs, (*Var).gain)
}

// gain adds a gradient, which is a value.
func (v *Var) gain(dx *Var) {
	if !v.wanted() {
		return
	}
	if dx = summed(dx, v.Shape()); !sameShape(dx.Shape(), v.Shape()) {
		dx = Expand(dx, v.Shape()...)
	}
	if v.slope != nil {
		dx = Add(v.slope, dx)
	}
	v.slope = dx
}

// summed is reduceTo of a value.
func summed(dx *Var, shape []int) *Var {
	if dims := stretched(dx.Shape(), shape); dims != 0 {
		return Reshape(sumOver(dx, dims), shape...)
	}
	return dx
}

// like returns a number as a constant that goes with x.
func (v *Var) like(c float64) *Var { return v.constant(v.t.Number(c)) }

// Leaf returns t as a value with a gradient that is not a parameter, such as an image. Backward
// adds the gradient to its [Var.Grad], and the function [Grad] returns it. t must stay open and
// unchanged until then.
func Leaf(t *tensor.Tensor) *Var { return (*Scope)(nil).Leaf(t) }

// Leaf returns t as a value of the scope with a gradient, as the function [Leaf] does. The gradient
// is the caller's, also after Reset, so each Backward of a Leaf allocates one.
func (s *Scope) Leaf(t *tensor.Tensor) *Var {
	wantGradient("Leaf", t)
	v := s.newVar()
	v.t, v.param, v.needs = t, &Param{Name: "leaf", T: t}, true
	return v
}
