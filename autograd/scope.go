package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A Scope lends the memory of a training step, and gets it back at once instead of leaving it to
// the garbage collector: the values computed from its constants live until Reset.
//
//	s := autograd.NewScope()
//	for batch := range batches {
//		nn.NLLLoss.Of(net.Forward(s.Const(batch[0])), batch[1]).Backward()
//		sgd.Step()
//		s.Reset()
//	}
//
// After Reset, no Var made in the scope may be used, nor a tensor that came from its T: Clone what
// must stay. A Scope belongs to one goroutine. A nil *Scope is what [Const] uses: every value is
// new and lives as long as it is referred to.
type Scope struct {
	free  map[form][]*tensor.Tensor
	views map[look]*tensor.Tensor
	lent  []*tensor.Tensor
	vars  []*Var
	used  int // of vars
	stack []*Var

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

// Const is the function [Const], in the scope.
func (s *Scope) Const(t *tensor.Tensor) *Var {
	v := s.newVar()
	v.t = t
	return v
}

// NoGrad is the function [NoGrad], in the scope.
func (s *Scope) NoGrad(t *tensor.Tensor) *Var {
	v := s.Const(t)
	v.quiet = true
	return v
}

// KeepBuffers has layers leave their running statistics alone: a replica's, when those of another
// one count.
func (s *Scope) KeepBuffers() { s.keeps = true }

// Reset takes back everything that was computed in the scope.
func (s *Scope) Reset() {
	for _, v := range s.vars[:s.used] {
		*v = Var{}
	}
	s.used = 0
	for _, t := range s.lent {
		f := formOf(t.Device(), t.DType(), t.Shape())
		s.free[f] = append(s.free[f], t)
	}
	clear(s.lent)
	s.lent = s.lent[:0]
}

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

// recycle takes a tensor back before Reset. Only who called empty for it may, as nobody else can
// have seen it.
func (s *Scope) recycle(t *tensor.Tensor) {
	if s == nil || t == nil {
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
}

// takeStack and keepStack let Backward use one stack again and again.
func (s *Scope) takeStack() []*Var {
	if s == nil {
		return nil
	}
	return s.stack
}

func (s *Scope) keepStack(stack []*Var) {
	if s != nil {
		clear(stack[:cap(stack)])
		s.stack = stack[:0]
	}
}
