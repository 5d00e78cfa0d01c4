package optim

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// SGDOptions are the options of torch.optim.SGD. The zero values but LR are PyTorch's defaults.
type SGDOptions struct {
	LR          float64 // the learning rate; 0: 0.001, PyTorch's default
	Momentum    float64 // factor by which the last step is taken again
	Dampening   float64 // the gradient enters the momentum times 1 - Dampening
	WeightDecay float64 // factor of the parameter that is added to its gradient
	Nesterov    bool    // look one step of momentum ahead; needs Momentum and no Dampening
	Maximize    bool    // step with the gradients, which raises the loss
	// add each element of a step atomically, so that no process's step is lost; momentum is plain
	// words, see Note [Shared state]
	Atomic bool
}

const sgdLR = 1e-3

// SGD steps against the gradients of parameters. Each process has a momentum of its own, also for
// shared parameters, unless Share was called. One goroutine at a time may use an SGD. The caller
// closes it.
type SGD struct {
	*SGDOptions // may be changed between steps, as a schedule of LR does

	core
}

// NewSGD returns an optimizer of params. It panics if an option is out of range.
func NewSGD(params iter.Seq[*autograd.Param], o SGDOptions) *SGD {
	o.LR = cmp.Or(o.LR, sgdLR)
	s := &SGD{SGDOptions: &o}
	s.bind()
	s.keep(params)
	return s
}

func (o SGDOptions) problem() string {
	switch {
	case !(o.LR >= 0):
		return fmt.Sprintf("learning rate %v: it is at least 0", o.LR)
	case !(o.Momentum >= 0):
		return fmt.Sprintf("momentum %v: it is at least 0", o.Momentum)
	case !(o.WeightDecay >= 0):
		return fmt.Sprintf("weight decay %v: it is at least 0", o.WeightDecay)
	case o.Nesterov && (o.Momentum == 0 || o.Dampening != 0):
		return fmt.Sprintf("Nesterov momentum needs a momentum and no dampening, not %v and %v", o.Momentum,
			o.Dampening)
	}
	return ""
}

func (o SGDOptions) states() (n int, start float64) {
	if o.Momentum == 0 {
		return 0, 0
	}
	return 1, 0
}

func (o SGDOptions) descent() device.Descent {
	rate, decay := direction(o.Maximize, o.LR, o.WeightDecay)
	return device.Descent{Rule: device.DescendSGD, LR: rate, Momentum: o.Momentum, Dampening: o.Dampening,
		WeightDecay: decay, Nesterov: o.Nesterov, Atomic: o.Atomic}
}

func descend[F kernel.Float](o *SGDOptions, u *update[F]) {
	rate, shrink := direction(o.Maximize, o.LR, o.WeightDecay)
	lr, momentum, dampening, decay := F(rate), F(o.Momentum), F(o.Dampening), F(shrink)
	if o.Atomic {
		kernel.SGDAtomic(u.p, u.g, u.state[0], lr, momentum, dampening, decay, o.Nesterov, u.n == 1)
	} else {
		kernel.SGD(u.p, u.g, u.state[0], lr, momentum, dampening, decay, o.Nesterov, u.n == 1)
	}
}

// marshal writes options, parameters and, after Share, the state.
func (s *SGD) marshal(e *codec.Encoder) error { return marshal(e, &s.core, *s.SGDOptions) }

// unmarshal reads what marshal wrote. The error wraps wire.ErrFormat or what tensors refuse.
func (s *SGD) unmarshal(d *codec.Decoder) (err error) {
	s.SGDOptions, err = unmarshal[SGDOptions](d, &s.core)
	s.bind()
	return err
}

func (s *SGD) bind() { bind(&s.core, s.SGDOptions, descend[float32], descend[float64]) }

func (o *SGDOptions) follow(rate float64)         { o.LR = rate }
func (o *SGDOptions) cycle(momentum float64) bool { o.Momentum = momentum; return true }

func (o *SGDOptions) class() class {
	return class{name: "SGD", mark: "dampening", maximize: o.Maximize,
		settings: []setting{number("lr", &o.LR), number("momentum", &o.Momentum), number("dampening", &o.Dampening),
			number("weight_decay", &o.WeightDecay), flag("nesterov", &o.Nesterov), flag("maximize", &o.Maximize),
			fixed("foreach", nil), fixed("differentiable", false), fixed("fused", nil)},
		moments: []moment{{"momentum_buffer", 0, o.Momentum != 0, true}},
	}
}
