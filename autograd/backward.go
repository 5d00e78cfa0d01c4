package autograd

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// BackwardOptions are the options of [Var.BackwardWith]. The zero value makes it equivalent to
// [Var.Backward].
type BackwardOptions struct {
	// Gradient is the gradient with respect to the value, which must have the same shape. nil means
	// 1, for a value with one element.
	Gradient *tensor.Tensor
	// RetainGraph keeps the saved values, so that Backward can traverse the graph again. If the
	// graph has a Scope, it keeps them until Reset.
	RetainGraph bool
}

// Backward computes the derivatives of v with respect to every Param that v depends on, and adds
// them to the Grads of the Params. It creates Grads that do not exist. v must have one element.
//
// Backward releases the saved values, so a second Backward through the same values panics.
// [Var.BackwardWith] with RetainGraph keeps them.
//
// Backward panics with an error that wraps [tensor.ErrMisuse] if v does not depend on a Param, or
// if a tensor that it needs was changed since the operation.
func (v *Var) Backward() { v.BackwardWith(BackwardOptions{}) }

// BackwardWith is like [Var.Backward], with options.
//
//	first.BackwardWith(autograd.BackwardOptions{RetainGraph: true})
//	second.Backward() // through values that both were computed from
func (v *Var) BackwardWith(o BackwardOptions) {
	v.checkRoot("Backward")
	if dy := o.Gradient; dy != nil {
		checkGradientOf("Backward", v, dy)
		v.backpropagate(dy, o.RetainGraph)
		return
	}
	if v.t.Numel() != 1 {
		misuse(tensor.ErrShape, "Backward: got shape %v, want a single number: take its Sum, or call BackwardWith "+
			"with a Gradient",
			v.t.Shape())
	}
	one := v.unitGradient()
	v.backpropagate(one, o.RetainGraph)
	v.scope.recycleTensor(one)
}

// checkRoot panics with [tensor.ErrMisuse] if v depends on no parameter, or if its Scope was
// Reset. The error contains the name of the calling function.
func (v *Var) checkRoot(what string) {
	if v.t == nil {
		misuse(tensor.ErrMisuse, "%s of a value after its Scope was Reset: call it before Reset", what)
	}
	if !v.needs {
		misuse(tensor.ErrMisuse, "%s of a value that depends on no parameter, only on Const, NoGrad or frozen "+
			"parameters",
			what)
	}
}

// checkGradientOf panics with [tensor.ErrShape] unless dy has v's shape. The error contains
// the name of the calling function.
func checkGradientOf(what string, v *Var, dy *tensor.Tensor) {
	if !sameShape(dy.Shape(), v.Shape()) {
		misuse(tensor.ErrShape, "%s: got a gradient of shape %[3]v, want %[2]v as the value",
			what, v.Shape(), dy.Shape())
	}
}

// unitGradient returns the derivative of v, which must have one element, with respect to itself:
// the number 1. The caller may recycle the tensor with v.scope.recycleTensor.
func (v *Var) unitGradient() *tensor.Tensor {
	one := v.newEmptyLike()
	dispatch("Backward", v, setOne[float32], setOne[float64], fillOne)(one)
	return one
}

func fillOne(t *tensor.Tensor) { t.Fill(1) }

func setOne[F kernel.Float](t *tensor.Tensor) { data[F](t)[0] = 1 }

// backpropagate propagates the gradient dy from v to the Params that it depends on. If retain is
// false, it releases the graph.
func (v *Var) backpropagate(dy *tensor.Tensor, retain bool) {
	w := walk{trail: v.scope.acquireTrail(), retain: retain}
	defer w.releaseState(v)
	w.countUses(v)
	v.addGradient(dy)
	w.ready = append(w.ready, v)
	w.propagateAll()
}

// A walk is one traversal of a graph, from outputs to inputs, by Backward or Grad.
type walk struct {
	trail
	at     *Var
	mark   uint64 // identifies a walk to selected inputs; otherwise 0
	retain bool   // keep the graph
	graph  bool   // gradients are values of a graph
	redoes bool   // functions are called again, and may use Params that seem complete
	whole  bool   // completed without a panic
	part   *Scope // inner scope of the values that are being counted
}

// countUses sets waiting of each value that v depends on to the number of its uses on the paths
// to v. A gradient is complete when all uses have contributed. countUses panics with
// [tensor.ErrMisuse] if an earlier walk has released one of the values. Counting uses neither
// recursion, which would overflow the stack for a long chain, nor a table of visited values.
func (w *walk) countUses(v *Var) {
	stack := append(w.ready, v)
	for from := len(w.ready); len(stack) > from; {
		last := len(stack) - 1
		n := stack[last]
		stack = stack[:last]
		w.redoes = w.redoes || n.redo != nil
		if n.walked && !n.asked {
			misuse(tensor.ErrMisuse, "second backward pass through %s: its saved tensors were released: add the "+
				"losses and call Backward once, or pass "+
				"BackwardOptions{RetainGraph: true} or GradOptions{RetainGraph: true} the first time", n.op)
		}
		for _, in := range n.inputs {
			if !in.needsGradient() {
				continue
			}
			if in.waiting++; in.waiting == 1 {
				w.trackInner(in)
				stack = append(stack, in)
			}
		}
	}
	w.ready = stack
}

// propagateAll propagates gradients, starting from the values with complete gradients.
func (w *walk) propagateAll() {
	for len(w.ready) > 0 {
		last := len(w.ready) - 1
		n := w.ready[last]
		w.at, w.ready = n, w.ready[:last]
		n.propagateGradient(w)
		w.recordContribution(n)
		n.releaseVisited(w)
		n.part.recordVisit(n)
	}
	w.whole = true
	for _, p := range w.arrived {
		p.callAfterHooks()
	}
}

// recordContribution records that n has contributed to the gradients of its inputs. It makes
// inputs ready if their gradients are complete.
func (w *walk) recordContribution(n *Var) {
	for _, in := range n.inputs {
		if !in.needsGradient() {
			continue
		}
		switch in.waiting--; {
		case in.waiting > 0:
		case in.hasPendingWork():
			w.ready = append(w.ready, in)
		default:
			in.part.recordVisit(in)
		}
	}
}

// releaseState releases the state of the walk. If a derivative panicked, it resets the counts, so
// that a caller that recovers can continue.
func (w *walk) releaseState(v *Var) {
	if !w.whole {
		w.resetUnvisited(v)
	}
	w.restoreVisited()
	v.scope.releaseTrail(w.trail)
}

// resetUnvisited resets the counts and gradients of values that were not visited.
func (w *walk) resetUnvisited(v *Var) {
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

// propagateGradient calls v's hooks with its complete gradient and then propagates the gradient
// to v's inputs, or adds it to the Grad if v is a Param's Var.
func (v *Var) propagateGradient(w *walk) {
	if hooks := v.activeHooks(); len(hooks) > 0 {
		v.callHooks(hooks, w)
	}
	switch {
	case v.param != nil:
		v.deliverParam(w)
	case w.mark != 0 && !v.leadsToSelected(): // v is a selected input; do not go beyond it
	case v.redo != nil:
		if v.grad != nil || v.slope != nil {
			w.splice(v, v.redo)
		}
	case v.slope != nil && v.plain != nil:
		w.splice(v, v.plain)
	case v.slope != nil:
		v.propagateValues()
	case v.grad != nil: // there is no gradient if the value is not used
		v.propagateTensors()
	}
}

func (v *Var) propagateTensors() {
	v.checkSaved()
	switch {
	case v.derive != nil:
		v.derive(v, v.grad)
	case v.backward != nil:
		v.backward(v.grad)
	default:
		v.applyRule(v.again)
	}
}

// applyRule computes gradients with a rule, without recording the operations. It releases
// intermediate values afterwards.
func (v *Var) applyRule(r rule) {
	s := v.scope
	if s == nil {
		s = scopes.Get().(*Scope)
	}
	before := s.mark()
	d := r(v, s.NoGrad(v.grad))
	d.each(v.inputs, func(in, dx *Var) { in.receiveGradient(sumTo(dx, in.Shape()), s, before) })
	if v.scope != nil {
		s.rewind(before)
		return
	}
	s.Reset()
	scopes.Put(s)
}

// scopes contains the scopes for gradients of values without a scope.
var scopes = sync.Pool{New: func() any { return NewScope() }}

// receiveGradient adds dx, which may be smaller than v and is broadcast to it, to v's gradient.
// It takes over the tensor of dx if the scope s has created it since the mark.
func (v *Var) receiveGradient(dx *Var, s *Scope, since mark) {
	switch {
	case v.grad != nil || v.isDirect():
		v.gradientSum().AddInPlace(dx.t)
	case !v.asked && sameShape(dx.Shape(), v.Shape()) && dx.t.DType() == v.t.DType() && dx.t.IsContiguous() &&
		s.detachTensor(dx.t, since):
		v.grad = dx.t
	default:
		v.grad = v.newEmptyLike().CopyFrom(dx.t)
	}
}

// releaseVisited releases v's gradient after its visit, unless Grad returns it. Unless the walk
// retains the graph, it also releases v's inputs and saved tensors, so that another walk through
// v panics.
func (v *Var) releaseVisited(w *walk) {
	if !v.asked {
		v.scope.recycleTensor(v.grad)
		v.grad, v.slope = nil, nil
	}
	if w.retain || v.param != nil || w.mark != 0 && !v.leadsToSelected() {
		return
	}
	v.backward, v.derive, v.again, v.plain, v.redo, v.inputs, v.saved, v.walked = nil, nil, nil, nil, nil,
		nil, nil, true
	clear(v.inputRoom[:])
	clear(v.savedRoom[:])
}

// needsGradient reports whether the current walk computes the gradient of v.
func (v *Var) needsGradient() bool { return v.needs && !v.idle }

// isDirect reports whether gradients of v are added to its Param's Grad immediately.
func (v *Var) isDirect() bool { return v.param != nil && !v.asked && len(v.param.hooks.before) == 0 }

// hasPendingWork reports whether the walk must visit v when its gradient is complete.
func (v *Var) hasPendingWork() bool { return !v.isDirect() || len(v.param.hooks.after) > 0 }

// writeGradient adds a gradient to v's. f must overwrite dx, a contiguous tensor of v's shape,
// with the gradient. f is not called if v needs no gradient.
func (v *Var) writeGradient(f func(dx *tensor.Tensor)) {
	if !v.needsGradient() {
		return
	}
	if v.grad == nil && !v.isDirect() {
		v.grad = v.newEmptyLike()
		f(v.grad)
		return
	}
	dx := v.newEmptyLike()
	f(dx)
	v.gradientSum().AddInPlace(dx)
	v.scope.recycleTensor(dx)
}

// addGradient adds a gradient, which may be smaller than v and broadcast to it, or larger and
// reduced to it.
func (v *Var) addGradient(dx *tensor.Tensor) {
	if v.needsGradient() {
		v.writeGradient(func(own *tensor.Tensor) { own.CopyFrom(reduceTo(dx, own.Shape())) })
	}
}

// addAndClose is addGradient for a gradient that it closes afterwards.
func (v *Var) addAndClose(dx *tensor.Tensor) {
	v.addGradient(dx)
	dx.Close()
}

// wrapConst returns t as a constant in v's scope, which takes ownership of t.
func (v *Var) wrapConst(t *tensor.Tensor) *Var { return v.scope.Const(v.ownTensor(t)) }

// ownTensor makes v's scope the owner of t, and returns t: the scope closes t at Reset. Without a
// scope, the garbage collector frees t.
func (v *Var) ownTensor(t *tensor.Tensor) *tensor.Tensor {
	if v.scope != nil {
		v.scope.made = append(v.scope.made, t)
	}
	return t
}

// newEmptyLike returns an uninitialized contiguous tensor with the device, dtype and shape of v's
// tensor. It belongs to v's scope, if there is one.
func (v *Var) newEmptyLike() *tensor.Tensor {
	return v.scope.newEmpty(v.t.Device(), v.t.DType(), v.t.Shape())
}

// gradientSum returns the tensor to which gradients of v are added, initially zeros. If v needs
// no gradient, it returns a tensor that is not used.
func (v *Var) gradientSum() *tensor.Tensor {
	if !v.needsGradient() { // the result is unused
		return v.newEmptyLike().Zero()
	}
	if v.isDirect() {
		return v.param.gradient()
	}
	if v.grad == nil {
		v.grad = v.newEmptyLike().Zero()
	}
	return v.grad
}

// reduceTo returns g summed over the dimensions that were broadcast from shape, or g itself if
// there are none.
func reduceTo(g *tensor.Tensor, shape []int) *tensor.Tensor {
	dims := broadcastDims(g.Shape(), shape)
	if dims == 0 {
		return g
	}
	var room [2 * maxDims]int
	return tensor.Keep(tensor.Sum, g, dims.appendDims(room[:0])...).Reshape(shape...)
}

// broadcastDims returns the dimensions of shape that were broadcast from the shape from.
func broadcastDims(shape, from []int) (dims axes) {
	extra := len(shape) - len(from)
	for i, n := range shape {
		if i < extra || n != 1 && from[i-extra] == 1 {
			dims |= 1 << i
		}
	}
	return dims
}

// axes is a bit set of dimensions.
type axes uint64

func (a axes) has(i int) bool { return a>>i&1 != 0 }

// appendDims appends the dimensions in ascending order to room.
func (a axes) appendDims(room []int) []int {
	for ; a != 0; a &= a - 1 {
		room = append(room, bits.TrailingZeros64(uint64(a)))
	}
	return room
}

// dimSet returns the set of the given dimensions of v, or of all dimensions if there are none, like
// tensor.Sum. It panics if a dimension is out of range or listed twice.
func (v *Var) dimSet(dims []int) (all axes) {
	n := v.t.Dims()
	if len(dims) == 0 || n == 0 && len(dims) == 1 && (dims[0] == 0 || dims[0] == -1) {
		return 1<<n - 1
	}
	for _, d := range dims {
		if d < -n || d >= n {
			misuse(tensor.ErrIndex, "dimension %d is out of range [-%[2]d, %[2]d)", d, n)
		}
		if d < 0 {
			d += n
		}
		if all.has(d) {
			misuse(tensor.ErrIndex, "dimension %d is repeated in %v", d, slices.Clone(dims))
		}
		all |= 1 << d
	}
	return all
}
