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

// SGDOptions are the options of torch.optim.SGD. A zero LR selects PyTorch's default; the other
// zero values are PyTorch's defaults.
type SGDOptions struct {
	LR          float64 // learning rate; 0 means 0.001, PyTorch's default
	Momentum    float64 // factor of the previous step that is added to each step
	Dampening   float64 // the gradient enters the momentum multiplied by 1 - Dampening
	WeightDecay float64 // factor of the parameter that is added to its gradient
	Nesterov    bool    // Nesterov momentum; requires Momentum and no Dampening
	Maximize    bool    // ascend instead of descend: maximise the loss
	// Atomic makes the optimizer add each element of a step atomically, so that concurrent
	// processes lose no step. The momentum is still plain words, see Note [Shared state].
	Atomic bool
}

const sgdLR = 1e-3

// SGD is stochastic gradient descent with optional momentum. Unless Share was called, each process
// has its own momentum, even for shared parameters. SGD must not be used by several goroutines
// concurrently. The caller must close it.
type SGD struct {
	*SGDOptions // may be changed between steps, as Follow does

	core
}

// NewSGD returns an optimizer of params. It panics with an error that wraps [tensor.ErrMisuse] if
// an option is out of range or if there are no params.
func NewSGD(params iter.Seq[*autograd.Param], o SGDOptions) *SGD {
	o.LR = cmp.Or(o.LR, sgdLR)
	s := &SGD{SGDOptions: &o}
	s.bind()
	s.addParams(params)
	return s
}

func (o SGDOptions) problem() string {
	switch {
	case !(o.LR >= 0):
		return fmt.Sprintf("learning rate %v: want at least 0", o.LR)
	case !(o.Momentum >= 0):
		return fmt.Sprintf("momentum %v: want at least 0", o.Momentum)
	case !(o.WeightDecay >= 0):
		return fmt.Sprintf("weight decay %v: want at least 0", o.WeightDecay)
	case o.Nesterov && (o.Momentum == 0 || o.Dampening != 0):
		return fmt.Sprintf("Nesterov momentum: got momentum %v and dampening %v, want a momentum and no dampening",
			o.Momentum,
			o.Dampening)
	}
	return ""
}

func (o SGDOptions) stateCount() (n int, start float64) {
	if o.Momentum == 0 {
		return 0, 0
	}
	return 1, 0
}

func (o SGDOptions) descent() device.Descent {
	rate, decay := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	return device.Descent{Rule: device.DescendSGD, LR: rate, Momentum: o.Momentum, Dampening: o.Dampening,
		WeightDecay: decay, Nesterov: o.Nesterov, Atomic: o.Atomic}
}

func stepSGD[F kernel.Float](o *SGDOptions, u *update[F]) {
	rate, shrink := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	lr, momentum, dampening, decay := F(rate), F(o.Momentum), F(o.Dampening), F(shrink)
	if o.Atomic {
		kernel.SGDAtomic(u.p, u.g, u.state[0], lr, momentum, dampening, decay, o.Nesterov, u.n == 1)
	} else {
		kernel.SGD(u.p, u.g, u.state[0], lr, momentum, dampening, decay, o.Nesterov, u.n == 1)
	}
}

// marshal encodes the options, the parameters and, after Share, the state.
func (s *SGD) marshal(e *codec.Encoder) error { return marshal(e, &s.core, *s.SGDOptions) }

// unmarshal decodes the output of marshal. The error wraps [codec.ErrFormat], or is the error of
// decoding a tensor.
func (s *SGD) unmarshal(d *codec.Decoder) (err error) {
	s.SGDOptions, err = unmarshal[SGDOptions](d, &s.core)
	s.bind()
	return err
}

func (s *SGD) bind() { bind(&s.core, s.SGDOptions, stepSGD[float32], stepSGD[float64]) }

func (o *SGDOptions) setRate(rate float64)              { o.LR = rate }
func (o *SGDOptions) setMomentum(momentum float64) bool { o.Momentum = momentum; return true }

func (o *SGDOptions) describeClass() class {
	return class{name: "SGD", mark: "dampening", maximize: o.Maximize,
		settings: []setting{numberSetting("lr", &o.LR), numberSetting("momentum", &o.Momentum),
			numberSetting("dampening", &o.Dampening),
			numberSetting("weight_decay", &o.WeightDecay), flagSetting("nesterov", &o.Nesterov),
			flagSetting("maximize", &o.Maximize),
			fixedSetting("foreach", nil), fixedSetting("differentiable", false), fixedSetting("fused", nil)},
		moments: []moment{{"momentum_buffer", 0, o.Momentum != 0, true}},
	}
}
