//go:build !race

package tensor_test

import (
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An operation whose result is closed makes one Go object: the result itself. Its memory, and that
// of what lies between, is used again. The race detector makes pools forget on purpose.
func TestOperations_MakeNothingButTheirResult(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	g := tensor.NewGenerator(1)
	x, y := tensor.RandN(tensor.Float32, g, 4, 6), tensor.RandN(tensor.Float32, g, 4, 6)
	v := tensor.RandN(tensor.Float32, g, 6)
	images, turned := tensor.RandN(tensor.Float32, g, 2, 3, 4, 6), tensor.RandN(tensor.Float32, g, 6, 4).T()
	rows, places := tensor.FromSlice([]int64{3, 0, 0}, 3), tensor.FromSlice([]int64{0, 1, 5, 5, 2, 2, 0, 1}, 4, 2)
	mask, product := tensor.Gt(x, y), tensor.New(tensor.Float32, 4, 4)
	wide, shifted := y.T(), y.Clone()
	up, down := shifted.Narrow(0, 0, 3), shifted.Narrow(0, 1, 3)
	for name, f := range map[string]func() *tensor.Tensor{
		"Add": func() *tensor.Tensor { return tensor.Add(x, v) },
		"Sin": func() *tensor.Tensor { return tensor.Sin(x) },
		"in place": func() *tensor.Tensor {
			return tensor.Tanh(x).NegInPlace().AddScalarInPlace(1).MulInPlace(y).AxpyInPlace(2, y)
		},
		"Hypot":             func() *tensor.Tensor { return tensor.Hypot(x, y) },
		"Gt":                func() *tensor.Tensor { return tensor.Gt(x, y) },
		"Not":               func() *tensor.Tensor { return tensor.Not(mask) },
		"Where":             func() *tensor.Tensor { return tensor.Where(mask, x, y) },
		"Clamp":             func() *tensor.Tensor { return tensor.Clamp(x, 0, 1) },
		"Clone":             func() *tensor.Tensor { return turned.Clone() },
		"To":                func() *tensor.Tensor { return x.To(tensor.Float64) },
		"Sum":               func() *tensor.Tensor { return tensor.Sum(x) },
		"Sum of columns":    func() *tensor.Tensor { return tensor.Sum(x, 0) },
		"Sum of channels":   func() *tensor.Tensor { return tensor.Sum(images, 0, 2, 3) },
		"Mean":              func() *tensor.Tensor { return tensor.Mean(x, 1) },
		"Var":               func() *tensor.Tensor { return tensor.Var(x, 1) },
		"Prod":              func() *tensor.Tensor { return tensor.Prod(x, 1) },
		"Amax":              func() *tensor.Tensor { return tensor.Amax(x, 1) },
		"Argmax":            func() *tensor.Tensor { return tensor.Argmax(x, 1) },
		"CumSum":            func() *tensor.Tensor { return tensor.CumSum(x, 0) },
		"Argsort":           func() *tensor.Tensor { return tensor.Argsort(x, 1, true) },
		"MatMul":            func() *tensor.Tensor { return tensor.MatMul(turned, v) },
		"MatMul of batches": func() *tensor.Tensor { return tensor.MatMul(images, v) },
		"Gather":            func() *tensor.Tensor { return tensor.Gather(x, 1, places) },
		"IndexSelect":       func() *tensor.Tensor { return tensor.IndexSelect(x, 0, rows) },
		"ScatterAdd":        func() *tensor.Tensor { return x.Clone().ScatterAddInPlace(1, places, y) },
		"MaskedFill":        func() *tensor.Tensor { return x.Clone().MaskedFillInPlace(mask, 2) },
		"MaskedSelect":      func() *tensor.Tensor { return tensor.MaskedSelect(x, mask) },
		"Cat":               func() *tensor.Tensor { return tensor.Cat(1, x, y) },
		"Flip":              func() *tensor.Tensor { return tensor.Flip(x, 1) },
		"Arange":            func() *tensor.Tensor { return tensor.Arange(tensor.Int64, 0, 24, 1) },
		"Narrow":            func() *tensor.Tensor { return x.Narrow(0, 1, 2) },
		"Permute":           func() *tensor.Tensor { return x.Permute(1, 0) },
		"Expand":            func() *tensor.Tensor { return v.Expand(4, 6) },
		"Squeeze":           func() *tensor.Tensor { return x.Squeeze() },
		"Nonzero":           func() *tensor.Tensor { return tensor.Nonzero(mask) },
		"AddMM":             func() *tensor.Tensor { return product.Clone().AddMMInPlace(x, wide) },
		"Equal":             func() *tensor.Tensor { tensor.Equal(x, y); return tensor.Neg(x) },
		"AllClose":          func() *tensor.Tensor { tensor.AllClose(x, y, 1e-5, 0); return tensor.Neg(x) },
		"Sum of all":        func() *tensor.Tensor { x.Sum(); return tensor.Neg(x) },
		"AddScalarAtomic":   func() *tensor.Tensor { return x.Clone().AddScalarAtomic(1) },
		"AddAtomic":         func() *tensor.Tensor { return x.Clone().AddAtomic(v) },
		"a shift":           func() *tensor.Tensor { down.CopyFrom(up); return tensor.Neg(x) },
	} {
		step := func() { f().Close() }
		for range 5 {
			step()
		}
		if n := testing.AllocsPerRun(50, step); n != 1 {
			t.Errorf("%s makes %v objects, want 1", name, n)
		}
	}
}
