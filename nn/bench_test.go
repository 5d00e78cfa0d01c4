package nn_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkStep is a whole training step of the MNIST net with 64 images, on one thread.
func BenchmarkStep(b *testing.B) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	for name, scope := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
		b.Run(name, func(b *testing.B) {
			g := tensor.NewGenerator(1)
			net := NewMNISTNet(g)
			x, target := tensor.RandN(tensor.Float32, g, 64, 1, 28, 28), tensor.RandInt(g, 0, 10, 64)
			sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.01, Momentum: 0.5})
			b.ReportAllocs()
			for b.Loop() {
				sgd.ZeroGrad()
				if scope == nil {
					nn.NLLLoss.Of(net.Forward(autograd.Const(x)), target).Backward()
				} else {
					nn.NLLLoss.Of(net.Forward(scope.Const(x)), target).Backward()
					scope.Reset()
				}
				sgd.Step()
			}
		})
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
