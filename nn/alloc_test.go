//go:build !race

package nn_test

import (
	"iter"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// A lap is a training step in a scope.
func lap(net nn.Layer, make func(params iter.Seq[*autograd.Param]) optim.Optimizer) (step func()) {
	g, scope := tensor.NewGenerator(1), autograd.NewScope()
	x, target := tensor.RandN(tensor.Float32, g, 8, 1, 28, 28), tensor.RandInt(g, 0, 10, 8)
	o := make(nn.Params(net))
	return func() {
		o.ZeroGrad()
		nn.NLLLoss{}.Of(net.Forward(scope.Const(x)), target).Backward()
		o.Step()
		scope.Reset()
	}
}

var optimizers = map[string]func(params iter.Seq[*autograd.Param]) optim.Optimizer{
	"sgd": func(params iter.Seq[*autograd.Param]) optim.Optimizer {
		return optim.NewSGD(params, optim.SGDOptions{LR: 0.01, Momentum: 0.5})
	},
	"adam": func(params iter.Seq[*autograd.Param]) optim.Optimizer {
		return optim.NewAdam(params, optim.AdamOptions{LR: 0.001})
	},
	"rmsprop": func(params iter.Seq[*autograd.Param]) optim.Optimizer {
		return optim.NewRMSprop(params, optim.RMSpropOptions{LR: 0.001})
	},
}

// The race detector makes pools forget on purpose.
func TestLayer_TrainsInAScopeWithoutAllocating(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	for name, make := range optimizers {
		for kind, net := range nets {
			step := lap(net(tensor.NewGenerator(1)), make)
			for range 3 {
				step()
			}
			if n := testing.AllocsPerRun(100, step); n != 0 {
				t.Errorf("a step of %s by %s allocates %v times, want 0", kind, name, n)
			}
		}
	}
}
