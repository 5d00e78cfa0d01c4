package nn_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// stepOf returns a training step of a network with 64 images, forwards, back and by SGD, in a scope
// or, with nil, in none.
func stepOf(net nn.Layer, scope *autograd.Scope) func() {
	g := tensor.NewGenerator(1)
	x, target := tensor.RandN(tensor.Float32, g, 64, 1, 28, 28), tensor.RandInt(g, 0, 10, 64)
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.01, Momentum: 0.5})
	return func() {
		sgd.ZeroGrad()
		if scope == nil {
			nn.NLLLoss{}.Of(net.Forward(autograd.Const(x)), target).Backward()
		} else {
			nn.NLLLoss{}.Of(net.Forward(scope.Const(x)), target).Backward()
			scope.Reset()
		}
		sgd.Step()
	}
}

// nets are the networks whose steps are measured: one with convolutions, and one without.
var nets = map[string]func(g *tensor.Generator) nn.Layer{
	"CNN": func(g *tensor.Generator) nn.Layer { return NewMNISTNet(g) },
	"MLP": func(g *tensor.Generator) nn.Layer {
		return nn.NewSequential(nn.Flatten, nn.NewLinear(28*28, 128, g), nn.ReLU, &nn.Dropout{P: 0.5},
			nn.NewLinear(128, 128, g), nn.ReLU, nn.NewLinear(128, 10, g), nn.LogSoftmax)
	},
}

// BenchmarkStep is a whole training step on one thread.
func BenchmarkStep(b *testing.B) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	for name, make := range nets {
		for way, scope := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
			b.Run(name+"/"+way, func(b *testing.B) {
				step := stepOf(make(tensor.NewGenerator(1)), scope)
				step()
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}

// BenchmarkEncoder is a step of a transformer block with 8 sequences of 128 elements, on one
// thread.
func BenchmarkEncoder(b *testing.B) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	g, s := tensor.NewGenerator(1), autograd.NewScope()
	m, x := nn.NewTransformerEncoderLayer(256, 8, 1024, 0, g), tensor.RandN(tensor.Float32, g, 128, 8, 256)
	for name, pass := range map[string]func(){
		"forward": func() { m.Forward(s.NoGrad(x)) },
		"step":    func() { autograd.Sum(m.Forward(s.Leaf(x))).Backward() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				pass()
				s.Reset()
			}
		})
	}
}
