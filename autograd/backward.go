package autograd

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// BackwardOptions are the options of BackwardWith. With the zero value it does what Backward does.
type BackwardOptions struct {
	// the gradient with respect to the value, of its shape; nil: 1, for a value of one element
	Gradient *tensor.Tensor
	// keep the saved values, so that Backward can walk the graph again; if the graph has a Scope,
	// until its Reset
	RetainGraph bool
}

// Backward computes the derivatives of v, which has one element, with respect to every Param that v
// depends on. It adds them to the Grads of the Params, and makes a Grad that does not exist.
//
// Backward uses the graph up: it drops the saved values, and a second Backward through the same
// values panics. BackwardWith RetainGraph keeps them.
//
// Backward panics if v depends on no Param, or if a tensor that it needs was changed since the
// operation.
func (v *Var) Backward() { v.BackwardWith(BackwardOptions{}) }

// BackwardWith does what Backward does, with options.
//
//	first.BackwardWith(autograd.BackwardOptions{RetainGraph: true})
//	second.Backward() // through values that both were computed from
func (v *Var) BackwardWith(o BackwardOptions) {
	v.checkRoot("Backward")
	if dy := o.Gradient; dy != nil {
		checkGradientOf("Backward", v, dy)
		v.walk(dy, o.RetainGraph)
		return
	}
	if v.t.Numel() != 1 {
		misuse(tensor.ErrShape, "Backward of shape %v: only a single number has a gradient; take its Sum, or give BackwardWith a Gradient", v.t.Shape())
	}
	one := v.one()
	v.walk(one, o.RetainGraph)
	v.scope.recycle(one)
}

// checkRoot panics unless derivatives of v can be asked for.
func (v *Var) checkRoot(what string) {
	if v.t == nil {
		misuse(tensor.ErrMisuse, "%s of a value whose Scope was Reset: walk the graph before", what)
	}
	if !v.needs {
		misuse(tensor.ErrMisuse, "%s of a value that depends on no parameter: it comes from Const, NoGrad or frozen parameters only", what)
	}
}

// checkGradientOf panics unless dy can be a gradient of v.
func checkGradientOf(what string, v *Var, dy *tensor.Tensor) {
	if !sameShape(dy.Shape(), v.Shape()) {
		misuse(tensor.ErrShape, "%s of a value of shape %v from a gradient of shape %v: they must be equal", what, v.Shape(), dy.Shape())
	}
}

// one returns the derivative of v, a single number, with respect to itself.
func (v *Var) one() *tensor.Tensor {
	one := v.room()
	dispatch("Backward", v, setOne[float32], setOne[float64], fillOne)(one)
	return one
}

func fillOne(t *tensor.Tensor) { t.Fill(1) }

func setOne[F kernel.Float](t *tensor.Tensor) { data[F](t)[0] = 1 }

// walk lets everything that v was computed from have its part of dy.
func (v *Var) walk(dy *tensor.Tensor, retain bool) {
	w := walk{trail: v.scope.takeTrail(), retain: retain}
	defer w.end(v)
	w.count(v)
	v.add(dy)
	w.ready = append(w.ready, v)
	w.run()
}

// A walk is one pass over a graph, from what is derived to what that was computed from.
type walk struct {
	trail
	at     *Var
	mark   uint64 // of a walk to some inputs only
	retain bool   // leave the graph as it is
	graph  bool   // gradients are values of a graph themselves
	redoes bool   // functions are called once more, and may use Params that seem complete
	whole  bool   // it came to its end
	part   *Scope // while values are counted: the inner scope that they belong to
}

// count sets waiting, of all that v was computed from, to how many operations between it and v use
// it: a value's gradient is whole when all of them have given theirs. Counting needs neither
// recursion, which a long chain would exhaust, nor a table of what was visited.
func (w *walk) count(v *Var) {
	stack := append(w.ready, v)
	for from := len(w.ready); len(stack) > from; {
		last := len(stack) - 1
		n := stack[last]
		stack = stack[:last]
		w.redoes = w.redoes || n.redo != nil
		if n.walked && !n.asked {
			misuse(tensor.ErrMisuse, "walk through %s for the second time: what it saved is gone. Add the losses and call Backward once, or walk the first time "+
				"with BackwardOptions{RetainGraph: true} or GradOptions{RetainGraph: true}", n.op)
		}
		for _, in := range n.inputs {
			if !in.wanted() {
				continue
			}
			if in.waiting++; in.waiting == 1 {
				w.join(in)
				stack = append(stack, in)
			}
		}
	}
	w.ready = stack
}

// run gives everything its gradient, from those on whose own is whole.
func (w *walk) run() {
	for len(w.ready) > 0 {
		last := len(w.ready) - 1
		n := w.ready[last]
		w.at, w.ready = n, w.ready[:last]
		n.give(w)
		w.settle(n)
		n.leave(w)
		n.part.walked(n)
	}
	w.whole = true
	for _, p := range w.arrived {
		p.arrived()
	}
}

// settle notes that n has given its inputs their gradients.
func (w *walk) settle(n *Var) {
	for _, in := range n.inputs {
		if !in.wanted() {
			continue
		}
		switch in.waiting--; {
		case in.waiting > 0:
		case in.stays():
			w.ready = append(w.ready, in)
		default:
			in.part.walked(in)
		}
	}
}

// end lets go of what the walk has used. If a derivative has panicked, it takes back what was
// counted, so that what a caller who recovers does next is not wrong.
func (w *walk) end(v *Var) {
	if !w.whole {
		w.forsake(v)
	}
	w.unsee()
	v.scope.keepTrail(w.trail)
}

// forsake takes back all counts and gradients of values that were not walked.
func (w *walk) forsake(v *Var) {
	stack := append(w.ready, v)
	if w.at != nil {
		stack = append(stack, w.at)
	}
	for len(stack) > 0 {
		last := len(stack) - 1
		n := stack[last]
		stack = stack[:last]
		n.grad, n.slope = nil, nil
		for _, in := range n.inputs {
			if in.waiting > 0 {
				in.waiting = 0
				stack = append(stack, in)
			}
		}
	}
	w.ready = stack
}

// give lets v's operation give its inputs their gradients.
func (v *Var) give(w *walk) {
	if hooks := v.watchers(); len(hooks) > 0 {
		v.show(hooks, w)
	}
	switch {
	case v.param != nil:
		v.arrive(w)
	case w.mark != 0 && !v.leads(): // it is asked for, and nothing behind it
	case v.redo != nil:
		if v.grad != nil || v.slope != nil {
			w.splice(v, v.redo)
		}
	case v.slope != nil && v.plain != nil:
		w.splice(v, v.plain)
	case v.slope != nil:
		v.giveValues()
	case v.grad != nil: // a part of which nothing is used has none
		v.giveTensors()
	}
}

func (v *Var) giveTensors() {
	v.checkSaved()
	switch {
	case v.derive != nil:
		v.derive(v, v.grad)
	case v.backward != nil:
		v.backward(v.grad)
	default:
		v.follow(v.again)
	}
}

// follow computes gradients by a rule of values, of which none is recorded. What lies between is
// let go of when they have arrived.
func (v *Var) follow(r rule) {
	s := v.scope
	if s == nil {
		s = scopes.Get().(*Scope)
	}
	before := s.mark()
	d := r(v, s.NoGrad(v.grad))
	d.each(v.inputs, func(in, dx *Var) { in.receive(summed(dx, in.Shape()), s, before) })
	if v.scope != nil {
		s.rewind(before)
		return
	}
	s.Reset()
	scopes.Put(s)
}

// scopes are those of gradients in graphs that have none.
var scopes = sync.Pool{New: func() any { return NewScope() }}

// receive adds a gradient, and keeps its tensor where that was made since a mark of the scope.
func (v *Var) receive(dx *Var, s *Scope, since mark) {
	switch {
	case v.grad != nil || v.direct():
		v.total().Add(dx.t)
	case !v.asked && sameShape(dx.Shape(), v.Shape()) && dx.t.DType() == v.t.DType() && dx.t.IsContiguous() &&
		s.giveUp(dx.t, since):
		v.grad = dx.t
	default:
		v.grad = v.room().CopyFrom(dx.t)
	}
}

// leave lets go of all that a walked value does not need any more.
func (v *Var) leave(w *walk) {
	if !v.asked {
		v.scope.recycle(v.grad)
		v.grad, v.slope = nil, nil
	}
	if w.retain || v.param != nil || w.mark != 0 && !v.leads() {
		return
	}
	v.backward, v.derive, v.again, v.plain, v.redo, v.inputs, v.saved, v.walked = nil, nil, nil, nil, nil,
		nil, nil, true
	clear(v.inputRoom[:])
	clear(v.savedRoom[:])
}

// wanted reports whether the walk that is under way computes a gradient of v.
func (v *Var) wanted() bool { return v.needs && !v.idle }

// direct reports whether gradients of v are added to its Param's Grad as they come.
func (v *Var) direct() bool { return v.param != nil && !v.asked && len(v.param.hooks.before) == 0 }

// stays reports whether something is left to be done when v's gradient is whole.
func (v *Var) stays() bool { return !v.direct() || len(v.param.hooks.after) > 0 }

// write lets f overwrite a tensor with a gradient of v, and adds it to what v has.
func (v *Var) write(f func(dx *tensor.Tensor)) {
	if !v.wanted() {
		return
	}
	if v.grad == nil && !v.direct() {
		v.grad = v.room()
		f(v.grad)
		return
	}
	dx := v.room()
	f(dx)
	v.total().Add(dx)
	v.scope.recycle(dx)
}

// add adds a gradient, which broadcasts from v's shape or is reduced to it.
func (v *Var) add(dx *tensor.Tensor) {
	if v.wanted() {
		v.write(func(own *tensor.Tensor) { own.CopyFrom(reduceTo(dx, own.Shape())) })
	}
}

// take adds a gradient that was made for it, and closes it.
func (v *Var) take(dx *tensor.Tensor) {
	v.add(dx)
	dx.Close()
}

// constant returns a tensor that was made for it as a constant that goes with v.
func (v *Var) constant(t *tensor.Tensor) *Var { return v.scope.Const(v.own(t)) }

// own has the scope of v close a tensor that was made for it, if there is one.
func (v *Var) own(t *tensor.Tensor) *tensor.Tensor {
	if v.scope != nil {
		v.scope.made = append(v.scope.made, t)
	}
	return t
}

// room returns a tensor like v's, whose elements are anything.
func (v *Var) room() *tensor.Tensor { return v.scope.empty(v.t.Device(), v.t.DType(), v.t.Shape()) }

// total returns what the gradients of v are added up in, zeros at first.
func (v *Var) total() *tensor.Tensor {
	if !v.wanted() { // nobody will read it
		return v.room().Zero()
	}
	if v.direct() {
		return v.param.gradient()
	}
	if v.grad == nil {
		v.grad = v.room().Zero()
	}
	return v.grad
}

// reduceTo sums g over the dimensions in which a tensor of the shape was stretched to it.
func reduceTo(g *tensor.Tensor, shape []int) *tensor.Tensor {
	dims := stretched(g.Shape(), shape)
	if dims == 0 {
		return g
	}
	var room [2 * maxDims]int
	return tensor.Keep(tensor.Sum, g, dims.list(room[:0])...).Reshape(shape...)
}

// stretched returns the dimensions of a shape in which one of the shape from was stretched to it.
func stretched(shape, from []int) (dims axes) {
	extra := len(shape) - len(from)
	for i, n := range shape {
		if i < extra || n != 1 && from[i-extra] == 1 {
			dims |= 1 << i
		}
	}
	return dims
}

// axes are dimensions of a value, one bit each.
type axes uint64

func (a axes) has(i int) bool { return a>>i&1 != 0 }

// list returns their numbers, in room if they fit there.
func (a axes) list(room []int) []int {
	for ; a != 0; a &= a - 1 {
		room = append(room, bits.TrailingZeros64(uint64(a)))
	}
	return room
}

// named returns the dimensions of x that are named, all for none, as tensor.Sum has them: it panics
// where they are not there, or twice.
func (v *Var) named(dims []int) (all axes) {
	n := v.t.Dims()
	if len(dims) == 0 || n == 0 && len(dims) == 1 && (dims[0] == 0 || dims[0] == -1) {
		return 1<<n - 1
	}
	for _, d := range dims {
		if d < -n || d >= n {
			misuse(tensor.ErrIndex, "dimension %d is out of range of %d", d, n)
		}
		if d < 0 {
			d += n
		}
		if all.has(d) {
			misuse(tensor.ErrIndex, "dimension %d is named twice in %v", d, slices.Clone(dims))
		}
		all |= 1 << d
	}
	return all
}
