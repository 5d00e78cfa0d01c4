package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

// A Scope provides memory for the values of a training step. Reset reclaims the memory for the next
// step, without the garbage collector. A value belongs to the scope if it was computed from values
// of [Scope.Const], [Scope.Leaf] or [Scope.NoGrad].
//
//	s := autograd.NewScope()
//	for batch := range batches {
//		nn.NLLLoss{}.Of(net.Forward(s.Const(batch[0])), batch[1]).Backward()
//		sgd.Step()
//		s.Reset()
//	}
//
// After Reset the program must not use a Var of the scope, the tensor of such a Var, or a tensor
// returned with it, such as the indices of [Max]. Tensors that are needed longer must be cloned. A
// Scope must be used by one goroutine only. With a nil *Scope each value has its own memory, which
// the garbage collector frees.
type Scope struct {
	free    map[form][]*tensor.Tensor
	views   map[look]*tensor.Tensor
	lent    []*tensor.Tensor
	made    []*tensor.Tensor // results of package tensor, to be closed
	looks   []*tensor.Tensor // views of other tensors; closed at Reset and reused
	looked  int              // number of looks in use
	vars    []*Var
	used    int                   // number of vars in use
	lists   arena[*Var]           // lists of values that operations return or keep
	tensors arena[*tensor.Tensor] // lists of tensors passed to operations
	sizes   arena[int]            // lists of dimensions passed to functions of the program
	trails  []trail               // buffers of walks
	inner   []*Scope              // in use by functions of Checkpoint
	idle    []*Scope              // unused inner scopes
	outer   *Scope                // parent of an inner scope
	depth   int                   // nesting depth; 0 if not an inner scope
	left    int                   // values of an inner scope that a walk has not visited yet

	keeps bool // see KeepBuffers
}

// A look is the key of a view that a Scope keeps: a tensor, and the form of the view.
type look struct {
	t *tensor.Tensor
	form
}

// A form is the properties that tensors must have in common to replace each other.
type form struct {
	dev   tensor.Device
	dtype tensor.DType
	dims  int
	shape [maxDims]int
}

// maxDims is the maximum number of dimensions of tensors that a Scope reuses. Operations in
// training have no more.
const maxDims = 4

// NewScope returns an empty scope.
func NewScope() *Scope {
	return &Scope{free: map[form][]*tensor.Tensor{}, views: map[look]*tensor.Tensor{}}
}

// Const returns t as a value of the scope that requires no gradient; see the function [Const].
func (s *Scope) Const(t *tensor.Tensor) *Var {
	v := s.newVar()
	v.t = t
	return v
}

// NoGrad returns t as a value of the scope with unrecorded operations; see the function [NoGrad].
func (s *Scope) NoGrad(t *tensor.Tensor) *Var {
	v := s.Const(t)
	v.quiet = true
	return v
}

// KeepBuffers makes layers leave their running statistics unchanged. It should be called for
// replicas of a module other than the first one, which updates them. It lasts beyond Reset.
func (s *Scope) KeepBuffers() { s.keeps = true }

// Reset reclaims the memory of all values of the scope.
func (s *Scope) Reset() {
	for _, t := range s.lent {
		f := formOf(t.Device(), t.DType(), t.Shape())
		s.free[f] = append(s.free[f], t)
	}
	clear(s.lent)
	s.lent = s.lent[:0]
	s.rewind(mark{})
	for len(s.inner) > 0 { // scopes of functions that panicked, or with values that Grad has kept
		s.inner[len(s.inner)-1].reclaimInner()
	}
}

// A mark records how much of a scope was in use.
type mark struct{ vars, made, looked, lists, tensors, sizes int }

func (s *Scope) mark() mark {
	return mark{s.used, len(s.made), s.looked, s.lists.used, s.tensors.used, s.sizes.used}
}

// rewind reclaims the memory used since a mark, except for the tensors of newEmpty. The values
// must no longer be used.
func (s *Scope) rewind(to mark) {
	for _, v := range s.vars[to.vars:s.used] {
		if v.plan != nil {
			*v.plan = plan{again: v.plan.again.cleared()}
		}
		*v = Var{plan: v.plan}
	}
	s.used = to.vars
	s.lists.rewind(to.lists)
	s.tensors.rewind(to.tensors)
	s.sizes.rewind(to.sizes)
	for _, t := range s.looks[to.looked:s.looked] {
		t.Close() // cannot fail: it is a view
	}
	s.looked = to.looked
	for _, t := range s.made[to.made:] {
		closeAndRecycle(t)
	}
	clear(s.made[to.made:])
	s.made = s.made[:to.made]
}

// closeAndRecycle closes a tensor and recycles it. No other code may have a reference to t.
func closeAndRecycle(t *tensor.Tensor) {
	if t.Device() != nil {
		must(t.Close())
		return
	}
	release(t)
}

// detachTensor removes t from the results of package tensor that the scope closes, if it was
// added since a mark. It reports whether it did; then the caller owns t.
func (s *Scope) detachTensor(t *tensor.Tensor, since mark) bool {
	for i, x := range slices.Backward(s.made[since.made:]) {
		if x == t {
			s.made = slices.Delete(s.made, since.made+i, since.made+i+1)
			return true
		}
	}
	return false
}

// viewAs returns t with another shape: a view that lasts until Reset, or a result of t.Reshape,
// which the garbage collector frees, if the shape has more than maxDims dimensions or the strides
// do not allow a view.
func (s *Scope) viewAs(t *tensor.Tensor, shape []int) *tensor.Tensor {
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

// Functions that package tensor provides for scopes.
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

// newEmpty returns an uninitialized tensor on dev, or on the heap if dev is nil. It belongs to
// the scope and lasts until Reset. If s is nil or the shape has more than maxDims dimensions, the
// garbage collector frees it.
func (s *Scope) newEmpty(dev tensor.Device, dt tensor.DType, shape []int) *tensor.Tensor {
	if s == nil || len(shape) > maxDims {
		return newEmptyOn(dev, dt, slices.Clone(shape))
	}
	var t *tensor.Tensor
	f := formOf(dev, dt, shape)
	if kept := s.free[f]; len(kept) > 0 {
		last := len(kept) - 1
		t, s.free[f] = kept[last], kept[:last]
	} else {
		t = newEmptyOn(dev, dt, slices.Clone(shape)) // the copy keeps shape from escaping to the heap
	}
	s.lent = append(s.lent, t)
	return t
}

// recycleTensor reclaims a tensor of newEmpty or detachTensor before Reset, or closes it if s is
// nil. t may be nil. Only the caller of these functions may do so, and no other code may have a
// reference to t.
func (s *Scope) recycleTensor(t *tensor.Tensor) {
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
	closeAndRecycle(t)
}

// newVarList returns a list of n nil values that lasts until Reset.
func (s *Scope) newVarList(n int) []*Var {
	if s == nil {
		return make([]*Var, n)
	}
	return s.lists.allocList(n)
}

// newTensorList returns an empty list with capacity for n tensors that lasts until Reset.
func (s *Scope) newTensorList(n int) []*tensor.Tensor {
	if s == nil {
		return make([]*tensor.Tensor, 0, n)
	}
	return s.tensors.allocList(n)[:0]
}

// copyDims returns a copy of dimensions that lasts until Reset.
func (s *Scope) copyDims(of []int) []int {
	if s == nil {
		return slices.Clone(of)
	}
	to := s.sizes.allocList(len(of))
	copy(to, of)
	return to
}

// An arena is a stack allocator for zeroed lists.
type arena[T any] struct {
	all  []T
	used int
}

// allocList returns a zeroed list with length and capacity n, which must not be used after a
// rewind to an earlier state. Lists remain valid when the arena grows.
func (a *arena[T]) allocList(n int) []T {
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

// A trail contains the buffers of a walk. A scope reuses it. A walk that a hook starts within
// another one has its own trail.
type trail struct {
	ready   []*Var   // values with complete gradients
	seen    []seen   // all visited values, in a walk to selected inputs
	visits  []visit  // stack of markIdle
	arrived []*Param // Params with hooks to call at the end
}

func (s *Scope) acquireTrail() (w trail) {
	if s == nil || len(s.trails) == 0 {
		return w
	}
	last := len(s.trails) - 1
	w, s.trails[last], s.trails = s.trails[last], trail{}, s.trails[:last]
	return w
}

func (s *Scope) releaseTrail(w trail) {
	if s != nil {
		s.trails = append(s.trails, trail{clearList(w.ready), clearList(w.seen), clearList(w.visits),
			clearList(w.arrived)})
	}
}

// clearList clears a list, so that it retains no memory, and returns it with length 0.
func clearList[T any](list []T) []T {
	clear(list[:cap(list)])
	return list[:0]
}
