package kernel_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// threadedKernels are the kernels that goroutines divide, except for products and layers. Each
// returns all bits of its results.
func threadedKernels[F kernel.Float](bits func([]F) []uint64) map[string]func() []uint64 {
	const rows, cols = 341, 1003 // no multiples of a vector
	x, y := noise[F](1, rows*cols), noise[F](2, rows*cols)
	const pieces = 3
	long := noise[F](3, pieces<<16+77) // several pieces of a loop
	all := map[string]func() []uint64{}
	two := func(name string, f func(x, y, z []F)) {
		all[name] = func() []uint64 {
			z := slices.Clone(y)
			f(x, y, z)
			return bits(z)
		}
	}
	state := func(name string, f func(p, a, b, c []F)) {
		all[name] = func() []uint64 {
			p, a, b, c := slices.Clone(x), noise[F](4, len(x)), noise[F](5, len(x)), noise[F](6, len(x))
			for i := range b {
				b[i], c[i] = b[i]*b[i], c[i]*c[i]
			}
			f(p, a, b, c)
			return slices.Concat(bits(p), bits(a), bits(b), bits(c))
		}
	}
	two("Add", kernel.Add[F])
	two("Sub", kernel.Sub[F])
	two("Mul", kernel.Mul[F])
	two("Div", kernel.Div[F])
	two("Max", kernel.Max[F])
	two("Min", kernel.Min[F])
	two("ReluBackward", kernel.ReluBackward[F])
	two("GELUBackward", kernel.GELUBackward[F])
	two("SiLUBackward", func(x, y, z []F) { kernel.GatedBackward(kernel.SiLU, x, y, z) })
	two("MSELossBackward", func(x, y, z []F) { kernel.MSELossBackward(x, y, 0.5, z) })
	for name, f := range map[string]func(x, y []F){
		"Relu": kernel.Relu[F], "Exp": kernel.Exp[F], "Sigmoid": kernel.Sigmoid[F], "Tanh": kernel.Tanh[F],
		"GELU": kernel.GELU[F], "Log": mapped[F](kernel.Log), "Sin": mapped[F](kernel.Sin),
		"Cos": mapped[F](kernel.Cos), "Neg": mapped[F](kernel.Neg), "Erf": mapped[F](kernel.Erf),
		"SiLU":    func(x, y []F) { kernel.Gated(kernel.SiLU, x, y) },
		"Axpy":    func(x, y []F) { kernel.Axpy(0.3, x, y) },
		"Scale":   func(x, y []F) { kernel.ScaleTo(0.3, x, y) },
		"Shift":   func(x, y []F) { kernel.Shift(0.3, x, y) },
		"Softmax": func(x, y []F) { kernel.Softmax(rows, cols, x, y) },
		"LogSoftmax": func(x, y []F) {
			kernel.LogSoftmax(rows, cols, x, y)
		},
		"SoftmaxBackward":    func(x, y []F) { kernel.SoftmaxBackward(rows, cols, x, y, y) },
		"LogSoftmaxBackward": func(x, y []F) { kernel.LogSoftmaxBackward(rows, cols, x, y, y) },
		"AddBias":            func(x, y []F) { kernel.AddBias(rows, cols, y, x) },
		"ColSum":             func(x, y []F) { kernel.ColSum(rows, cols, x, y) },
		"Dropout": func(x, y []F) {
			kept := make([]F, rows)
			for i := range kept {
				kept[i] = F(i % 2)
			}
			kernel.Dropout(cols, 2, kept, x, y)
		},
	} {
		two(name, func(x, y, z []F) { f(x, z) })
	}
	state("SGD", func(p, a, b, _ []F) { kernel.SGD(p, a, nil, 0.1, 0, 0, 0.01, false, true) })
	state("momentum", func(p, a, b, _ []F) { kernel.SGD(p, a, b, 0.1, 0.9, 0, 0.01, false, false) })
	state("Nesterov", func(p, a, b, _ []F) { kernel.SGD(p, a, b, 0.1, 0.9, 0, 0.01, true, false) })
	adam := kernel.AdamStep{LR: 0.1, Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.01, N: 3}
	state("Adam", func(p, a, b, c []F) { kernel.Adam(adam, p, a, c, b) })
	state("AMSGrad", func(p, a, b, c []F) { kernel.AMSGrad(adam, p, a, slices.Clone(a), b, c) })
	state("RMSprop", func(p, a, b, _ []F) {
		kernel.RMSprop(kernel.RMSpropStep{LR: 0.1, Alpha: 0.9, Eps: 1e-8, WeightDecay: 0.01}, p, a, b)
	})
	state("Adagrad", func(p, a, b, _ []F) { kernel.Adagrad(kernel.AdagradStep{LR: 0.1, Eps: 1e-8}, p, a, b) })
	all["sums"] = func() []uint64 {
		one := []F{kernel.Sum(long), kernel.Largest(long), kernel.Smallest(long)}
		sums, columns, exact := make([]float64, rows), make([]float64, cols), make([]float64, cols)
		kernel.RowSums(cols, x, sums)
		kernel.ColumnSums(rows, cols, x, cols, columns, false)
		kernel.ColumnSums(rows, cols, x, cols, exact, true)
		best, least := slices.Clone(y[:cols]), slices.Clone(y[:cols])
		kernel.LargestColumns(rows, cols, x, cols, best)
		kernel.SmallestColumns(rows, cols, x, cols, least)
		return slices.Concat(bits(one), bits64([]float64{kernel.Sum64(long), kernel.Sum64(x)}), bits64(sums),
			bits64(columns), bits64(exact), bits(best), bits(least))
	}
	all["MaxPool2d"] = func() []uint64 {
		const n, side = 341, 31
		y, idx, dx := make([]F, n*15*15), make([]int32, n*15*15), make([]F, n*side*side)
		kernel.MaxPool2d(1, n, side, side, 2, 2, 2, 2, 0, 0, x[:n*side*side], y, idx)
		kernel.MaxPool2dBackward(1, n, side, side, 2, 2, 2, 2, 0, 0, y, idx, dx)
		return slices.Concat(bits(y), bits(dx))
	}
	return all
}

func TestKernelsReturnTheSameBitsForAnyNumberOfThreads(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		testThreadedKernels(t, "float32", threadedKernels(bits32))
		testThreadedKernels(t, "float64", threadedKernels(bits64))
	})
}

func testThreadedKernels(t *testing.T, dtype string, kernels map[string]func() []uint64) {
	for name, f := range kernels {
		t.Run(dtype+"/"+name, func(t *testing.T) {
			withThreads(t, 1)
			want := f()
			for threads := 2; threads <= 4; threads++ {
				if threads == 3 && testing.Short() {
					continue // it takes two minutes where the processor is emulated
				}
				kernel.SetThreads(threads)
				if got := f(); !slices.Equal(got, want) {
					i := 0
					for got[i] == want[i] {
						i++
					}
					t.Errorf("with %d threads element %d of %d differs from the result with one thread", threads, i,
						len(want))
				}
			}
		})
	}
}

// A sum must not overflow in a branch of the tree, whichever goroutine computes it.
func TestSumsThatOverflowAreExactWithAnyNumberOfThreads(t *testing.T) {
	x := make([]float32, 1<<20)
	for i := range x {
		x[i] = 3e38
	}
	for threads := 1; threads <= 4; threads++ {
		withThreads(t, threads)
		if got, want := kernel.Sum64(x), float64(float32(3e38))*float64(len(x)); got != want {
			t.Errorf("with %d threads the sum is %v, want %v", threads, got, want)
		}
	}
}
