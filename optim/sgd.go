package optim

import (
	"fmt"
	"iter"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// SGDOptions are the numbers of stochastic gradient descent, as in torch.optim.SGD. The zero value of each but LR is
// its default.
type SGDOptions struct {
	LR          float64 // the learning rate
	Momentum    float64 // how much of the last step is taken again
	Dampening   float64 // how much less of the gradient enters the momentum
	WeightDecay float64 // how much of the parameter itself is added to its gradient
	Nesterov    bool    // look one step of momentum ahead; needs Momentum and no Dampening
	Atomic      bool    // add each element atomically, so that no process's step is lost; see Note [Hogwild]
}

// SGD takes steps against the gradients of parameters. Its momentum belongs to this process, also where the parameters
// are shared. One goroutine at a time may use it.
type SGD struct {
	SGDOptions // may be changed between steps, as a schedule of LR does

	slots []slot
}

// A slot is a parameter and its momentum.
type slot struct {
	param *autograd.Param
	buf   *tensor.Tensor // nil before the first step, and without momentum
}

// NewSGD returns the optimizer of params, of which it keeps a list. It panics if an option makes no sense.
func NewSGD(params iter.Seq[*autograd.Param], o SGDOptions) *SGD {
	o.check()
	s := &SGD{SGDOptions: o}
	for p := range params {
		s.slots = append(s.slots, slot{param: p})
	}
	return s
}

func (o SGDOptions) check() {
	switch {
	case !(o.LR >= 0):
		misuse("learning rate %v: it is at least 0", o.LR)
	case !(o.Momentum >= 0):
		misuse("momentum %v: it is at least 0", o.Momentum)
	case !(o.WeightDecay >= 0):
		misuse("weight decay %v: it is at least 0", o.WeightDecay)
	case o.Nesterov && (o.Momentum == 0 || o.Dampening != 0):
		misuse("Nesterov momentum needs a momentum and no dampening, not %v and %v", o.Momentum, o.Dampening)
	}
}

// ZeroGrad sets the gradients to zeros. Parameters that have none yet stay so.
func (s *SGD) ZeroGrad() {
	for _, l := range s.slots {
		l.param.ZeroGrad()
	}
}

// Step takes one step, in place. Parameters without a gradient, and frozen ones, stay as they are.
func (s *SGD) Step() {
	for i := range s.slots {
		l := &s.slots[i]
		if l.param.Grad == nil || l.param.Frozen {
			continue
		}
		switch dt := l.param.T.DType(); dt {
		case tensor.Float32:
			step[float32](s.SGDOptions, l)
		case tensor.Float64:
			step[float64](s.SGDOptions, l)
		default:
			misuse("parameter %s is %v: steps are taken in float32 and float64", l.param.Name, dt)
		}
	}
}

func step[F kernel.Float](o SGDOptions, l *slot) {
	p, g := l.param.T, l.param.Grad
	if !slices.Equal(p.Shape(), g.Shape()) {
		misuse("parameter %s of shape %v has a gradient of %v", l.param.Name, p.Shape(), g.Shape())
	}
	first := l.buf == nil
	var buf []F
	if o.Momentum != 0 {
		if first {
			l.buf = tensor.New(p.DType(), p.Shape()...)
		}
		buf = tensor.Data[F](l.buf)
	}
	descend := kernel.SGD[F]
	if o.Atomic {
		descend = kernel.SGDAtomic[F]
	}
	descend(tensor.Data[F](p), tensor.Data[F](g), buf,
		F(o.LR), F(o.Momentum), F(o.Dampening), F(o.WeightDecay), o.Nesterov, first)
	p.Touch() // graphs that need the old value notice
	runtime.KeepAlive(g)
}

// misuse panics with a sentence about a programmer's mistake.
func misuse(format string, args ...any) { panic("optim: " + fmt.Sprintf(format, args...)) }
