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

// AdamOptions are the options of torch.optim.Adam and AdamW. Nil stands for PyTorch's default.
type AdamOptions struct {
	LR float64 // the learning rate; 0: 0.001, PyTorch's default
	// factors by which the mean gradient and the mean squared gradient are kept at each step; nil:
	// 0.9 and 0.999
	Betas       *[2]float64
	Eps         *float64 // added to the root of the mean squared gradient; nil: 1e-8
	WeightDecay float64  // factor of the parameter that is added to its gradient
	AMSGrad     bool     // divide by the root of the largest mean square so far (Reddi and others)
	Maximize    bool     // step with the gradients, which raises the loss
	// weight decay shrinks the parameter by LR·WeightDecay of itself instead: AdamW, whose default
	// of WeightDecay in PyTorch is 0.01
	Decoupled bool
	// add each element of a step atomically, so that no process's step is lost; moments are plain
	// words, see Note [Shared state]
	Atomic bool
}

var adamBetas = [2]float64{0.9, 0.999}

const adamLR, adamEps = 1e-3, 1e-8

// Adam steps against the mean gradients of parameters, divided by the roots of the mean squares
// (Kingma and Ba, 2014). Each process has moments of its own, also for shared parameters, unless
// Share was called. One goroutine at a time may use an Adam. The caller closes it.
type Adam struct {
	*AdamOptions // may be changed between steps, as a schedule of LR does

	core
}

// NewAdam returns an optimizer of params. It panics if an option is out of range.
func NewAdam(params iter.Seq[*autograd.Param], o AdamOptions) *Adam {
	o.LR = cmp.Or(o.LR, adamLR)
	a := &Adam{AdamOptions: &o}
	a.bind()
	a.keep(params)
	return a
}

// NewAdamW returns an Adam of params with Decoupled weight decay (Loshchilov and Hutter, 2017). It
// panics if an option is out of range.
func NewAdamW(params iter.Seq[*autograd.Param], o AdamOptions) *Adam {
	o.Decoupled = true
	return NewAdam(params, o)
}

func (o AdamOptions) betas() (b1, b2 float64) {
	b := or(o.Betas, adamBetas)
	return b[0], b[1]
}

func (o AdamOptions) eps() float64 { return or(o.Eps, adamEps) }

func (o AdamOptions) problem() string {
	b1, b2 := o.betas()
	switch {
	case !(o.LR >= 0):
		return fmt.Sprintf("learning rate %v: it is at least 0", o.LR)
	case !(b1 >= 0 && b1 < 1) || !(b2 >= 0 && b2 < 1):
		return fmt.Sprintf("betas %v and %v: they are at least 0 and less than 1", b1, b2)
	case !(o.eps() >= 0):
		return fmt.Sprintf("eps %v: it is at least 0", o.eps())
	case !(o.WeightDecay >= 0):
		return fmt.Sprintf("weight decay %v: it is at least 0", o.WeightDecay)
	}
	return ""
}

// states are the mean, the mean square and, for AMSGrad, the largest mean square.
func (o AdamOptions) states() (n int, start float64) {
	if o.AMSGrad {
		return 3, 0
	}
	return 2, 0
}

func (o AdamOptions) descent() device.Descent {
	rate, decay := direction(o.Maximize, o.LR, o.WeightDecay)
	b1, b2 := o.betas()
	return device.Descent{Rule: device.DescendAdam, LR: rate, Beta1: b1, Beta2: b2, Eps: o.eps(),
		WeightDecay: decay, Decoupled: o.Decoupled, AMSGrad: o.AMSGrad, Atomic: o.Atomic}
}

func adam[F kernel.Float](o *AdamOptions, u *update[F]) {
	rate, decay := direction(o.Maximize, o.LR, o.WeightDecay)
	b1, b2 := o.betas()
	s := kernel.AdamStep{LR: rate, Beta1: b1, Beta2: b2, Eps: o.eps(), WeightDecay: decay,
		Decoupled: o.Decoupled, N: u.n}
	if o.AMSGrad {
		u.move(o.Atomic,
			func(at int, p, g []F) { kernel.AMSGrad(s, p, g, u.state[0][at:], u.state[1][at:], u.state[2][at:]) })
		return
	}
	u.move(o.Atomic, func(at int, p, g []F) { kernel.Adam(s, p, g, u.state[0][at:], u.state[1][at:]) })
}

// marshal writes options, parameters and, after Share, the state.
func (a *Adam) marshal(e *codec.Encoder) error { return marshal(e, &a.core, *a.AdamOptions) }

// unmarshal reads what marshal wrote. The error wraps wire.ErrFormat or what tensors refuse.
func (a *Adam) unmarshal(d *codec.Decoder) (err error) {
	a.AdamOptions, err = unmarshal[AdamOptions](d, &a.core)
	a.bind()
	return err
}

func (a *Adam) bind() { bind(&a.core, a.AdamOptions, adam[float32], adam[float64]) }

func (o *AdamOptions) follow(rate float64) { o.LR = rate }

func (o *AdamOptions) cycle(momentum float64) bool {
	_, b2 := o.betas()
	o.Betas = &[2]float64{momentum, b2}
	return true
}

func (o *AdamOptions) class() class {
	c := class{name: "Adam", mark: "betas", counts: true, maximize: o.Maximize,
		settings: []setting{number("lr", &o.LR), pair("betas", &o.Betas, adamBetas), optional("eps", &o.Eps, adamEps),
			number("weight_decay", &o.WeightDecay),
			flag("amsgrad", &o.AMSGrad), flag("maximize", &o.Maximize), same("decoupled_weight_decay", o.Decoupled),
			fixed("foreach", nil), fixed("capturable", false), fixed("differentiable", false), fixed("fused", nil)},
		moments: []moment{{"exp_avg", 0, true, true}, {"exp_avg_sq", 1, true, false},
			{"max_exp_avg_sq", 2, o.AMSGrad, false}},
	}
	if o.Decoupled {
		c.name = "AdamW"
	}
	return c
}
