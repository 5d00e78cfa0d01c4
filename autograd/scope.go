package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

// A Scope lends memory to the values of a training step. Reset takes the memory back for the next
// step, without the garbage collector. The values of a scope are those computed from its Const,
// Leaf and NoGrad.
//
//	s := autograd.NewScope()
//	for batch := range batches {
//		nn.NLLLoss.Of(net.Forward(s.Const(batch[0])), batch[1]).Backward()
//		sgd.Step()
//		s.Reset()
//	}
//
// After Reset the program must not use a Var of the scope, nor a tensor of such a Var, nor one that
// came with it, such as the indices of Max. Clone a tensor that must stay. A Scope belongs to one
// goroutine. With a nil *Scope each value has memory of its own, which the garbage collector frees.
type Scope struct {
	free    map[form][]*tensor.Tensor
	views   map[look]*tensor.Tensor
	lent    []*tensor.Tensor
	made    []*tensor.Tensor // by operations of package tensor, to be closed
	looks   []*tensor.Tensor // at tensors of others; closed at Reset, and used again
	looked  int              // of looks, how many are in use
	vars    []*Var
	used    int                   // of vars
	lists   arena[*Var]           // lists of values that operations return or keep
	tensors arena[*tensor.Tensor] // lists of tensors that operations are given
	sizes   arena[int]            // dimensions that functions of the program are given
	trails  []trail               // of walks
	inner   []*Scope              // in use, by functions that a Checkpoint calls
	idle    []*Scope              // those that wait to be used again
	outer   *Scope                // of an inner one
	depth   int                   // of an inner one, 0 for others
	left    int                   // of an inner one: values that a walk has yet to come to

	keeps bool // buffers
}

// A look is a tensor with another shape.
type look struct {
	t *tensor.Tensor
	form
}

// A form is what tensors must have in common to stand in for each other.
type form struct {
	dev   tensor.Device
	dtype tensor.DType
	dims  int
	shape [maxDims]int
}

// maxDims is up to how many dimensions a Scope reuses tensors: as many as the operations on the
// path of training have.
const maxDims = 4

// NewScope returns an empty scope.
func NewScope() *Scope {
	return &Scope{free: map[form][]*tensor.Tensor{}, views: map[look]*tensor.Tensor{}}
}

// Const returns t as a value of the scope without a gradient, as the function [Const] does.
func (s *Scope) Const(t *tensor.Tensor) *Var {
	v := s.newVar()
	v.t = t
	return v
}

// NoGrad returns t as a value of the scope whose operations are not recorded, as the function
// [NoGrad] does.
func (s *Scope) NoGrad(t *tensor.Tensor) *Var {
	v := s.Const(t)
	v.quiet = true
	return v
}

// KeepBuffers makes layers leave their running statistics unchanged, for a replica of a module
// whose first replica updates them.
func (s *Scope) KeepBuffers() { s.keeps = true }

// Reset takes back the memory of all values of the scope.
func (s *Scope) Reset() {
	for _, t := range s.lent {
		f := formOf(t.Device(), t.DType(), t.Shape())
		s.free[f] = append(s.free[f], t)
	}
	clear(s.lent)
	s.lent = s.lent[:0]
	s.rewind(mark{})
	for len(s.inner) > 0 { // those of functions that panicked, or whose values Grad has kept
		s.inner[len(s.inner)-1].end()
	}
}

// A mark is how much of a scope was in use.
type mark struct{ vars, made, looked, lists, tensors, sizes int }

func (s *Scope) mark() mark {
	return mark{s.used, len(s.made), s.looked, s.lists.used, s.tensors.used, s.sizes.used}
}

// rewind takes back what was used since a mark, but not the tensors that gradients are in.
func (s *Scope) rewind(to mark) {
	for _, v := range s.vars[to.vars:s.used] {
		if v.plan != nil {
			*v.plan = plan{again: v.plan.again.emptied()}
		}
		*v = Var{plan: v.plan}
	}
	s.used = to.vars
	s.lists.rewind(to.lists)
	s.tensors.rewind(to.tensors)
	s.sizes.rewind(to.sizes)
	for _, t := range s.looks[to.looked:s.looked] {
		t.Close() // a view: it cannot fail
	}
	s.looked = to.looked
	for _, t := range s.made[to.made:] {
		released(t)
	}
	clear(s.made[to.made:])
	s.made = s.made[:to.made]
}

// released closes a tensor that nobody else has, and lets it be used again.
func released(t *tensor.Tensor) {
	if t.Device() != nil {
		must(t.Close())
		return
	}
	release(t)
}

// giveUp takes out of the scope a tensor that was made since a mark, if it was.
func (s *Scope) giveUp(t *tensor.Tensor, since mark) bool {
	for i, x := range slices.Backward(s.made[since.made:]) {
		if x == t {
			s.made = slices.Delete(s.made, since.made+i, since.made+i+1)
			return true
		}
	}
	return false
}

// look returns t with another shape: a view that lasts until Reset, or else a copy.
func (s *Scope) look(t *tensor.Tensor, shape []int) *tensor.Tensor {
	if s.looked == len(s.looks) {
		s.looks = append(s.looks, new(tensor.Tensor))
	}
	v := s.looks[s.looked]
	var sizes [maxDims]int
	if len(shape) > maxDims || !lookAs(t, v, copy(sizes[:], shape), sizes) {
		return t.Reshape(shape...)
	}
	s.looked++
	return v
}

// What package tensor does for scopes.
var (
	release = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]().Release
	lookAs  = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]().LookAs
	lookAt  = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]().Look

	foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()
)

func (s *Scope) newVar() *Var {
	if s == nil {
		return new(Var)
	}
	if s.used == len(s.vars) {
		s.vars = append(s.vars, new(Var))
	}
	v := s.vars[s.used]
	s.used++
	v.scope = s
	return v
}

func formOf(dev tensor.Device, dt tensor.DType, shape []int) form {
	f := form{dev: dev, dtype: dt, dims: len(shape)}
	copy(f.shape[:], shape)
	return f
}

// empty returns a tensor whose elements are anything.
func (s *Scope) empty(dev tensor.Device, dt tensor.DType, shape []int) *tensor.Tensor {
	if s == nil || len(shape) > maxDims {
		return emptyOn(dev, dt, slices.Clone(shape))
	}
	var t *tensor.Tensor
	f := formOf(dev, dt, shape)
	if kept := s.free[f]; len(kept) > 0 {
		last := len(kept) - 1
		t, s.free[f] = kept[last], kept[:last]
	} else {
		t = emptyOn(dev, dt, slices.Clone(shape)) // so that a shape may be on the caller's stack
	}
	s.lent = append(s.lent, t)
	return t
}

// recycle takes back, before Reset, a tensor of empty, or one that was given up. Only the caller of
// these may, as nobody else can have seen it.
func (s *Scope) recycle(t *tensor.Tensor) {
	if t == nil {
		return
	}
	if s == nil {
		t.Close()
		return
	}
	for i := len(s.lent) - 1; i >= 0; i-- {
		if s.lent[i] == t {
			last := len(s.lent) - 1
			s.lent[i], s.lent[last] = s.lent[last], nil
			s.lent = s.lent[:last]
			f := formOf(t.Device(), t.DType(), t.Shape())
			s.free[f] = append(s.free[f], t)
			return
		}
	}
	released(t)
}

// list returns n places for values, which are there until Reset.
func (s *Scope) list(n int) []*Var {
	if s == nil {
		return make([]*Var, n)
	}
	return s.lists.take(n)
}

// room returns a list of tensors for n, which has none yet.
func (s *Scope) room(n int) []*tensor.Tensor {
	if s == nil {
		return make([]*tensor.Tensor, 0, n)
	}
	return s.tensors.take(n)[:0]
}

// dims returns a copy of dimensions, for a function that may keep them until Reset.
func (s *Scope) dims(of []int) []int {
	if s == nil {
		return slices.Clone(of)
	}
	to := s.sizes.take(len(of))
	copy(to, of)
	return to
}

// An arena is memory of which lists are taken, all zeros, and given back in the opposite order.
type arena[T any] struct {
	all  []T
	used int
}

// take returns a list of n, whose capacity ends with it. Lists that were taken before an arena grew
// stay where they are.
func (a *arena[T]) take(n int) []T {
	from := a.used
	if a.used += n; a.used > len(a.all) {
		a.all = make([]T, 2*a.used)
	}
	return a.all[from:a.used:a.used]
}

func (a *arena[T]) rewind(to int) {
	clear(a.all[to:a.used])
	a.used = to
}

// A trail is what a walk has in hand. A scope uses it again. A walk that a hook begins within
// another one has a trail of its own.
type trail struct {
	ready   []*Var   // whose gradients are whole
	seen    []seen   // of a walk to some inputs only: all that has been marked
	visits  []visit  // on the way to these inputs
	arrived []*Param // whose hooks wait for the end
}

func (s *Scope) takeTrail() (w trail) {
	if s == nil || len(s.trails) == 0 {
		return w
	}
	last := len(s.trails) - 1
	w, s.trails[last], s.trails = s.trails[last], trail{}, s.trails[:last]
	return w
}

func (s *Scope) keepTrail(w trail) {
	if s != nil {
		s.trails = append(s.trails, trail{emptied(w.ready), emptied(w.seen), emptied(w.visits), emptied(w.arrived)})
	}
}

// emptied returns a list for another use, in which nothing is kept from the collector.
func emptied[T any](list []T) []T {
	clear(list[:cap(list)])
	return list[:0]
}
