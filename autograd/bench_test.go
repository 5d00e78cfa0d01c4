package autograd_test

import (
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkWalk is a small graph of many operations, forward and back: what a graph costs, rather
// than what is computed.
func BenchmarkWalk(b *testing.B) {
	w := autograd.NewParam("w", values(1, 0.5, 8, 8))
	v := autograd.NewParam("v", values(2, 0.5, 8))
	x := values(3, 1, 8, 8)
	for name, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h := s.Const(x)
				for range 4 {
					h = autograd.Tanh(autograd.Add(autograd.Mul(autograd.Linear(h, w.Var(), nil), v.Var()), v.Var()))
					h = autograd.ReLU(autograd.AddScalar(autograd.MulScalar(h, 1.1), 0.1))
				}
				autograd.Mean(autograd.Sum(autograd.Exp(autograd.MatMul(h, w.Var())), 1)).Backward()
				w.ZeroGrad()
				v.ZeroGrad()
				if s != nil {
					s.Reset()
				}
			}
		})
	}
}

// BenchmarkGrad is a derivative, and one that can be derived again.
func BenchmarkGrad(b *testing.B) {
	w, x := autograd.NewParam("w", values(1, 0.5, 32, 32)), values(3, 1, 32, 32)
	for name, o := range map[string]autograd.GradOptions{"tensors": {}, "values": {CreateGraph: true}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				h := autograd.Leaf(x)
				y := autograd.Sum(autograd.Tanh(autograd.Linear(autograd.Tanh(autograd.Linear(h, w.Var(),
					nil)), w.Var(), nil)))
				if tensor.Abs(autograd.Grad(vars{y}, vars{h}, o)[0].T()).Sum() == 0 {
					b.Fatal("no derivative")
				}
			}
		})
	}
}

// BenchmarkCheckpoint is a step of eight layers, 256×128 by 128×128, in two checkpoints of four.
func BenchmarkCheckpoint(b *testing.B) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	w := autograd.NewParam("w", tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 128, 128))
	x, s := tensor.RandN(tensor.Float32, tensor.NewGenerator(2), 256, 128), autograd.NewScope()
	f := func(in ...*autograd.Var) *autograd.Var {
		h := in[0]
		for range 4 {
			h = autograd.Tanh(autograd.Linear(h, w.Var(), nil))
		}
		return h
	}
	b.ReportAllocs()
	for b.Loop() {
		autograd.Sum(autograd.Checkpoint(f, autograd.Checkpoint(f, s.Const(x)))).Backward()
		s.Reset()
	}
}
