package kernel_test

import (
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// The layers of the MNIST net for a batch of 64.
var (
	conv1 = kernel.ConvShape{N: 64, C: 1, H: 28, W: 28, OutC: 10, KH: 5, KW: 5, StrideH: 1, StrideW: 1}
	conv2 = kernel.ConvShape{N: 64, C: 10, H: 12, W: 12, OutC: 20, KH: 5, KW: 5, StrideH: 1, StrideW: 1}
)

// rate reports how many operations of a product with so many multiplications were done a second.
func rate(b *testing.B, multiplications int) {
	b.ReportMetric(2*float64(multiplications)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkGemm(b *testing.B) {
	oneThread(b)
	for _, s := range []struct{ m, n, k int }{
		{10, 576, 25}, {20, 64, 250}, {20, 256, 250}, {250, 64, 20}, {64, 50, 320}, {64, 250, 20},
		{50, 320, 64}, {20, 250, 64}, {256, 256, 256}, {1024, 1024, 1024},
	} {
		for _, f := range []struct{ a, b bool }{{false, false}, {false, true}, {true, false}} {
			b.Run(fmt.Sprintf("%dx%dx%d/%v-%v", s.m, s.n, s.k, f.a, f.b), func(b *testing.B) {
				x, y, z := noise[float32](1, s.m*s.k), noise[float32](2, s.k*s.n), make([]float32, s.m*s.n)
				lda, ldb := s.k, s.n
				if f.a {
					lda = s.m
				}
				if f.b {
					ldb = s.k
				}
				for b.Loop() {
					kernel.Gemm(f.a, f.b, s.m, s.n, s.k, 1, x, lda, y, ldb, 0, z, s.n)
				}
				rate(b, s.m*s.n*s.k)
			})
		}
	}
}

// BenchmarkStep is the kernels of one training step of the MNIST net, forward and backward, batch
// 64.
func BenchmarkStep(b *testing.B) {
	oneThread(b)
	n := newMNIST(64)
	b.ReportAllocs()
	for b.Loop() {
		n.forward()
		n.backward()
	}
}

func BenchmarkConv2d(b *testing.B) {
	oneThread(b)
	for name, s := range map[string]kernel.ConvShape{"conv1": conv1, "conv2": conv2} {
		l, scratch := newLayer[float32](s), new(kernel.Scratch)
		cost := len(l.y) * s.C * s.KH * s.KW
		b.Run(name+"/forward", func(b *testing.B) {
			for b.Loop() {
				kernel.Conv2d(s, l.x, l.w, l.b, l.y, scratch)
			}
			rate(b, cost)
		})
		b.Run(name+"/dw", func(b *testing.B) {
			for b.Loop() {
				kernel.Conv2dBackward(s, l.x, l.w, l.dy, nil, l.dw, l.db, scratch)
			}
			rate(b, cost)
		})
		b.Run(name+"/dx", func(b *testing.B) {
			for b.Loop() {
				kernel.Conv2dBackward(s, l.x, l.w, l.dy, l.dx, nil, nil, scratch)
			}
			rate(b, cost)
		})
	}
}

func BenchmarkPool(b *testing.B) {
	oneThread(b)
	x := noise[float32](1, 64*10*24*24)
	y, idx := make([]float32, len(x)/4), make([]int32, len(x)/4)
	b.Run("forward", func(b *testing.B) {
		for b.Loop() {
			kernel.MaxPool2d(64, 10, 24, 24, 2, 2, 2, 2, 0, 0, x, y, idx)
		}
	})
	b.Run("backward", func(b *testing.B) {
		for b.Loop() {
			kernel.MaxPool2dBackward(64, 10, 24, 24, 2, 2, 2, 2, 0, 0, y, idx, x)
		}
	})
	b.Run("relu", func(b *testing.B) {
		for b.Loop() {
			kernel.Relu(x, x)
		}
	})
	b.Run("relu backward", func(b *testing.B) {
		dy := noise[float32](1, len(x))
		for b.Loop() {
			kernel.ReluBackward(x, dy, dy)
		}
	})
}

// BenchmarkAttend is 16 heads of 512 queries and keys of 64 numbers.
func BenchmarkAttend(b *testing.B) {
	oneThread(b)
	a := kernel.Attention{Heads: 16, Q: 512, K: 512, D: 64, V: 64, Scale: 0.125}
	n := a.Heads * a.Q * a.D
	q, out, logs := noise[float32](1, n), make([]float32, n), make([]float64, a.Heads*a.Q)
	dq, dk, dv := make([]float32, n), make([]float32, n), make([]float32, n)
	b.Run("forward", func(b *testing.B) {
		for b.Loop() {
			kernel.Attend(a, q, q, q, nil, out, logs)
		}
		rate(b, 2*n*a.K)
	})
	b.Run("backward", func(b *testing.B) {
		for b.Loop() {
			kernel.AttendBackward(a, q, q, q, nil, out, logs, q, dq, dk, dv, nil)
		}
		rate(b, 5*n*a.K)
	})
}

// BenchmarkFunctions is functions of 4,096 numbers, which stay in the nearest cache.
func BenchmarkFunctions(b *testing.B) {
	x, y := noise[float32](1, 4096), make([]float32, 4096)
	for i := range x {
		x[i] = max(x[i], -x[i]) + 0.01
	}
	for name, do := range map[string]func(x, y []float32){
		"exp": kernel.Exp[float32], "sigmoid": kernel.Sigmoid[float32], "tanh": kernel.Tanh[float32],
		"gelu": kernel.GELU[float32], "log": mapped[float32](kernel.Log), "sqrt": mapped[float32](kernel.Sqrt),
		"neg":     mapped[float32](kernel.Neg),
		"softmax": func(x, y []float32) { kernel.Softmax(8, 512, x, y) },
		"sum64":   func(x, _ []float32) { kernel.Sum64(x) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				do(x, y)
			}
		})
	}
}
