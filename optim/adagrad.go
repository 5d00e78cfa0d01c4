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

// AdagradOptions are the options of torch.optim.Adagrad. A nil pointer or a zero LR selects
// PyTorch's default; the other zero values are PyTorch's defaults.
type AdagradOptions struct {
	LR                 float64  // learning rate; 0 means 0.01, PyTorch's default
	LRDecay            float64  // the learning rate of step n is LR / (1 + (n-1)·LRDecay)
	WeightDecay        float64  // factor of the parameter that is added to its gradient
	InitialAccumulator float64  // initial value of the sums of squares
	Eps                *float64 // added to the square roots of the sums; nil means 1e-10
	Maximize           bool     // ascend instead of descend: maximise the loss
	// Atomic makes the optimizer add each element of a step atomically, so that concurrent
	// processes lose no step. The sums are still plain words, see Note [Shared state].
	Atomic bool
}

const adagradLR, adagradEps = 1e-2, 1e-10

// Adagrad divides each step by the square root of the sum of squared gradients. See Duchi et al.,
// Adaptive Subgradient Methods, 2011, https://jmlr.org/papers/v12/duchi11a.html.
//
// Unless Share was called, each process has its own sums, even for shared parameters. Adagrad must
// not be used by several goroutines concurrently. The caller must close it.
type Adagrad struct {
	*AdagradOptions // may be changed between steps, as Follow does

	core
}

// NewAdagrad returns an optimizer of params. It panics with an error that wraps [tensor.ErrMisuse]
// if an option is out of range or if there are no params.
func NewAdagrad(params iter.Seq[*autograd.Param], o AdagradOptions) *Adagrad {
	o.LR = cmp.Or(o.LR, adagradLR)
	a := &Adagrad{AdagradOptions: &o}
	a.bind()
	a.addParams(params)
	return a
}

func (o AdagradOptions) eps() float64 { return valueOr(o.Eps, adagradEps) }

func (o AdagradOptions) problem() string {
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"learning rate", o.LR}, {"learning rate decay", o.LRDecay}, {"weight decay", o.WeightDecay},
		{"initial accumulator", o.InitialAccumulator}, {"eps", o.eps()},
	} {
		if !(x.value >= 0) {
			return fmt.Sprintf("%s %v: want at least 0", x.name, x.value)
		}
	}
	return ""
}

func (o AdagradOptions) stateCount() (n int, start float64) { return 1, o.InitialAccumulator }

func (o AdagradOptions) descent() device.Descent {
	rate, decay := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	return device.Descent{Rule: device.DescendAdagrad, LR: rate, LRDecay: o.LRDecay, Eps: o.eps(),
		WeightDecay: decay, Atomic: o.Atomic}
}

func stepAdagrad[F kernel.Float](o *AdagradOptions, u *update[F]) {
	rate, decay := stepDirection(o.Maximize, o.LR/(1+float64(u.n-1)*o.LRDecay), o.WeightDecay)
	s := kernel.AdagradStep{LR: rate, Eps: o.eps(), WeightDecay: decay}
	u.updateElements(o.Atomic, func(at int, p, g []F) { kernel.Adagrad(s, p, g, u.state[0][at:]) })
}

// marshal encodes the options, the parameters and, after Share, the state.
func (a *Adagrad) marshal(e *codec.Encoder) error { return marshal(e, &a.core, *a.AdagradOptions) }

// unmarshal decodes the output of marshal. The error wraps [codec.ErrFormat], or is the error of
// decoding a tensor.
func (a *Adagrad) unmarshal(d *codec.Decoder) (err error) {
	a.AdagradOptions, err = unmarshal[AdagradOptions](d, &a.core)
	a.bind()
	return err
}

func (a *Adagrad) bind() { bind(&a.core, a.AdagradOptions, stepAdagrad[float32], stepAdagrad[float64]) }

func (o *AdagradOptions) setRate(rate float64)     { o.LR = rate }
func (o *AdagradOptions) setMomentum(float64) bool { return false }

func (o *AdagradOptions) describeClass() class {
	return class{name: "Adagrad", mark: "lr_decay", counts: true, always: true, maximize: o.Maximize,
		settings: []setting{numberSetting("lr", &o.LR), numberSetting("lr_decay", &o.LRDecay),
			optionalSetting("eps", &o.Eps, adagradEps),
			numberSetting("weight_decay", &o.WeightDecay),
			numberSetting("initial_accumulator_value", &o.InitialAccumulator), flagSetting("maximize", &o.Maximize),
			fixedSetting("foreach", nil), fixedSetting("differentiable", false), fixedSetting("fused", nil)},
		moments: []moment{{"sum", 0, true, false}},
	}
}
