package optim

import (
	"cmp"
	"fmt"
	"iter"
	"math"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// RMSpropOptions are the options of torch.optim.RMSprop. A nil pointer or a zero LR selects
// PyTorch's default.
type RMSpropOptions struct {
	LR          float64  // learning rate; 0 means 0.01, PyTorch's default
	Alpha       *float64 // decay rate of the mean squared gradient; nil means 0.99
	Eps         *float64 // added to the root of the mean squared gradient; nil means 1e-8
	WeightDecay float64  // factor of the parameter that is added to its gradient
	Momentum    float64  // factor of the previous step that is added to each step
	Maximize    bool     // ascend instead of descend: maximise the loss
	Centered    bool     // divide by the standard deviation of the gradient (Graves, 2013)
	// Atomic makes the optimizer add each element of a step atomically, so that concurrent
	// processes lose no step. The state still consists of plain words, see Note [Shared state].
	Atomic bool
}

const rmspropLR, rmspropAlpha, rmspropEps = 1e-2, 0.99, 1e-8

// RMSprop divides the gradient by the square root of its mean square (Tieleman and Hinton, 2012).
//
// Unless Share was called, each process has its own state, even for shared parameters. RMSprop must
// not be used by several goroutines concurrently. The caller must close it.
type RMSprop struct {
	*RMSpropOptions // may be changed between steps, as Follow does

	core
}

// NewRMSprop returns an optimizer of params. It panics with an error that wraps [tensor.ErrMisuse]
// if an option is out of range or if there are no params.
func NewRMSprop(params iter.Seq[*autograd.Param], o RMSpropOptions) *RMSprop {
	o.LR = cmp.Or(o.LR, rmspropLR)
	r := &RMSprop{RMSpropOptions: &o}
	r.bind()
	r.addParams(params)
	return r
}

func (o RMSpropOptions) alpha() float64 { return valueOr(o.Alpha, rmspropAlpha) }
func (o RMSpropOptions) eps() float64   { return valueOr(o.Eps, rmspropEps) }

func (o RMSpropOptions) problem() string {
	switch {
	case !(o.LR >= 0):
		return fmt.Sprintf("learning rate %v: want at least 0", o.LR)
	case !(o.alpha() >= 0 && o.alpha() <= 1):
		return fmt.Sprintf("alpha %v: want 0 to 1", o.alpha())
	case !(o.eps() >= 0):
		return fmt.Sprintf("eps %v: want at least 0", o.eps())
	case !(o.WeightDecay >= 0):
		return fmt.Sprintf("weight decay %v: want at least 0", o.WeightDecay)
	case !(o.Momentum >= 0):
		return fmt.Sprintf("momentum %v: want at least 0", o.Momentum)
	}
	return ""
}

// stateCount returns the number of state tensors, and the initial value of their elements. The
// tensors are the mean square, the mean, which is used only if Centered, and the previous step,
// which is used only with Momentum.
func (RMSpropOptions) stateCount() (n int, start float64) { return maxStates, 0 }

func (o RMSpropOptions) descent() device.Descent {
	rate, decay := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	return device.Descent{Rule: device.DescendRMSprop, LR: rate, Beta2: o.alpha(), Eps: o.eps(),
		WeightDecay: decay, Momentum: o.Momentum, Centered: o.Centered, Atomic: o.Atomic}
}

func stepRMSprop[F kernel.Float](o *RMSpropOptions, u *update[F]) {
	lr, shrink := stepDirection(o.Maximize, o.LR, o.WeightDecay)
	if o.Momentum == 0 && !o.Centered {
		s := kernel.RMSpropStep{LR: lr, Alpha: o.alpha(), Eps: o.eps(), WeightDecay: shrink}
		u.updateElements(o.Atomic, func(at int, p, g []F) { kernel.RMSprop(s, p, g, u.state[0][at:]) })
		return
	}
	rate, kept, fresh, eps, decay, again := F(lr), F(o.alpha()), F(1-o.alpha()), F(o.eps()), F(shrink), F(o.Momentum)
	u.updateElements(o.Atomic, func(at int, p, g []F) {
		square, mean, last := u.state[0][at:][:len(g)], u.state[1][at:][:len(g)], u.state[2][at:][:len(g)]
		p = p[:len(g)]
		for i, g := range g {
			g += decay * p[i]
			spread := kept*square[i] + fresh*g*g
			square[i] = spread
			if o.Centered {
				mean[i] += fresh * (g - mean[i])
				spread -= mean[i] * mean[i]
			}
			step := g / (F(math.Sqrt(float64(spread))) + eps)
			if again != 0 {
				last[i] = again*last[i] + step
				step = last[i]
			}
			p[i] -= rate * step
		}
	})
}

// marshal encodes the options, the parameters and, after Share, the state.
func (r *RMSprop) marshal(e *codec.Encoder) error { return marshal(e, &r.core, *r.RMSpropOptions) }

// unmarshal decodes the output of marshal. The error wraps [codec.ErrFormat], or is the error of
// decoding a tensor.
func (r *RMSprop) unmarshal(d *codec.Decoder) (err error) {
	r.RMSpropOptions, err = unmarshal[RMSpropOptions](d, &r.core)
	r.bind()
	return err
}

func (r *RMSprop) bind() { bind(&r.core, r.RMSpropOptions, stepRMSprop[float32], stepRMSprop[float64]) }

func (o *RMSpropOptions) setRate(rate float64)              { o.LR = rate }
func (o *RMSpropOptions) setMomentum(momentum float64) bool { o.Momentum = momentum; return true }

func (o *RMSpropOptions) describeClass() class {
	return class{name: "RMSprop", mark: "alpha", counts: true, maximize: o.Maximize,
		settings: []setting{numberSetting("lr", &o.LR), optionalSetting("alpha", &o.Alpha, rmspropAlpha),
			optionalSetting("eps", &o.Eps, rmspropEps),
			numberSetting("weight_decay", &o.WeightDecay),
			numberSetting("momentum", &o.Momentum), flagSetting("centered", &o.Centered),
			flagSetting("maximize", &o.Maximize),
			fixedSetting("foreach", nil), fixedSetting("capturable", false), fixedSetting("differentiable", false)},
		moments: []moment{{"square_avg", 0, true, false}, {"grad_avg", 1, o.Centered, true},
			{"momentum_buffer", 2, o.Momentum != 0, true}},
	}
}
