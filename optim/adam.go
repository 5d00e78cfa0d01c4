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

// AdamOptions are the options of torch.optim.Adam and AdamW. A nil pointer or a zero LR selects
// PyTorch's default.
type AdamOptions struct {
	LR float64 // learning rate; 0 means 0.001, PyTorch's default
	// Betas are the decay rates of the mean gradient and of the mean squared gradient; nil means
	// 0.9 and 0.999.
	Betas       *[2]float64
	Eps         *float64 // added to the root of the mean squared gradient; nil means 1e-8
	WeightDecay float64  // factor of the parameter that is added to its gradient
	AMSGrad     bool     // divide by the root of the largest mean square (Reddi et al., 2018)
	Maximize    bool     // ascend instead of descend: maximise the loss
	// Decoupled makes each step shrink the parameter by LR·WeightDecay of itself, instead of
	// changing the gradient. This is AdamW. PyTorch's default WeightDecay for AdamW is 0.01; here
	// it must be set.
	Decoupled bool
	// Atomic makes the optimizer add each element of a step atomically, so that concurrent
	// processes lose no step. The moments are still plain words, see Note [Shared state].
	Atomic bool
}

var adamBetas = [2]float64{0.9, 0.999}

const adamLR, adamEps = 1e-3, 1e-8

// Adam divides the mean gradient by the square root of the mean squared gradient. See Kingma and
// Ba, Adam, 2014, https://arxiv.org/abs/1412.6980.
//
// Unless Share was called, each process has its own moments, even for shared parameters. Adam must
// not be used by several goroutines concurrently. The caller must close it.
type Adam struct {
	*AdamOptions // may be changed between steps, as Follow does

	core
}

// NewAdam returns an optimizer of params. It panics with an error that wraps [tensor.ErrMisuse] if
// an option is out of range or if there are no params.
func NewAdam(params iter.Seq[*autograd.Param], o AdamOptions) *Adam {
	o.LR = cmp.Or(o.LR, adamLR)
	a := &Adam{AdamOptions: &o}
	a.bind()
	a.addParams(params)
	return a
}

// NewAdamW returns an [Adam] with Decoupled weight decay. See Loshchilov and Hutter, Decoupled
// Weight Decay Regularization, 2017, https://arxiv.org/abs/1711.05101. It panics like [NewAdam].
func NewAdamW(params iter.Seq[*autograd.Param], o AdamOptions) *Adam {
	o.Decoupled = true
	return NewAdam(params, o)
}

func (o AdamOptions) betas() (b1, b2 float64) {
	b := valueOr(o.Betas, adamBetas)
	return b[0], b[1]
}

func (o AdamOptions) eps() float64 { return valueOr(o.Eps, adamEps) }

func (o AdamOptions) problem() string {
	b1, b2 := o.betas()
	switch {
	case !(o.LR >= 0):
		return fmt.Sprintf("learning rate %v: want at least 0", o.LR)
	case !(b1 >= 0 && b1 < 1) || !(b2 >= 0 && b2 < 1):
		return fmt.Sprintf("betas %v and %v: want at least 0 and less than 1", b1, b2)
	case !(o.eps() >= 0):
		return fmt.Sprintf("eps %v: want at least 0", o.eps())
	case !(o.WeightDecay >= 0):
		return fmt.Sprintf("weight decay %v: want at least 0", o.WeightDecay)
	}
	return ""
}

// stateCount returns the number of state tensors, and the initial value of their elements. The
// tensors are the mean, the mean square and, for AMSGrad, the largest mean square.
func (o AdamOptions) stateCount() (n int, start float64) {
	if o.AMSGrad {
		return 3, 0
	}
	return 2, 0
}

func (o AdamOptions) descent() device.Descent {
	rate, decay := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	b1, b2 := o.betas()
	return device.Descent{Rule: device.DescendAdam, LR: rate, Beta1: b1, Beta2: b2, Eps: o.eps(),
		WeightDecay: decay, Decoupled: o.Decoupled, AMSGrad: o.AMSGrad, Atomic: o.Atomic}
}

func stepAdam[F kernel.Float](o *AdamOptions, u *update[F]) {
	rate, decay := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	b1, b2 := o.betas()
	s := kernel.AdamStep{LR: rate, Beta1: b1, Beta2: b2, Eps: o.eps(), WeightDecay: decay,
		Decoupled: o.Decoupled, N: u.n}
	if o.AMSGrad {
		u.updateElements(o.Atomic,
			func(at int, p, g []F) { kernel.AMSGrad(s, p, g, u.state[0][at:], u.state[1][at:], u.state[2][at:]) })
		return
	}
	u.updateElements(o.Atomic, func(at int, p, g []F) { kernel.Adam(s, p, g, u.state[0][at:], u.state[1][at:]) })
}

// marshal encodes the options, the parameters and, after Share, the state.
func (a *Adam) marshal(e *codec.Encoder) error { return marshal(e, &a.core, *a.AdamOptions) }

// unmarshal decodes the output of marshal. The error wraps [codec.ErrFormat], or is the error of
// decoding a tensor.
func (a *Adam) unmarshal(d *codec.Decoder) (err error) {
	a.AdamOptions, err = unmarshal[AdamOptions](d, &a.core)
	a.bind()
	return err
}

func (a *Adam) bind() { bind(&a.core, a.AdamOptions, stepAdam[float32], stepAdam[float64]) }

func (o *AdamOptions) setRate(rate float64) { o.LR = rate }

func (o *AdamOptions) setMomentum(momentum float64) bool {
	_, b2 := o.betas()
	o.Betas = &[2]float64{momentum, b2}
	return true
}

func (o *AdamOptions) describeClass() class {
	c := class{name: "Adam", mark: "betas", counts: true, maximize: o.Maximize,
		settings: []setting{numberSetting("lr", &o.LR), pairSetting("betas", &o.Betas, adamBetas),
			optionalSetting("eps", &o.Eps, adamEps),
			numberSetting("weight_decay", &o.WeightDecay),
			flagSetting("amsgrad", &o.AMSGrad), flagSetting("maximize", &o.Maximize),
			exactSetting("decoupled_weight_decay", o.Decoupled),
			fixedSetting("foreach", nil), fixedSetting("capturable", false), fixedSetting("differentiable", false),
			fixedSetting("fused", nil)},
		moments: []moment{{"exp_avg", 0, true, true}, {"exp_avg_sq", 1, true, false},
			{"max_exp_avg_sq", 2, o.AMSGrad, false}},
	}
	if o.Decoupled {
		c.name = "AdamW"
	}
	return c
}
