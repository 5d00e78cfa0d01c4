package tensor_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

// A bigOperand is a pair of tensors that goroutines divide, of every layout that has loops of its
// own.
type bigOperand struct {
	name string
	x, y *tensor.Tensor
}

func bigOperands(dt tensor.DType) []bigOperand {
	g := tensor.NewGenerator(1)
	random := func(shape ...int) *tensor.Tensor {
		x := tensor.RandN(tensor.Float32, g, shape...)
		if dt == tensor.Int64 || dt == tensor.Uint8 {
			x.MulScalarInPlace(40).AbsInPlace().AddScalarInPlace(1) // no divisor is zero
		}
		return x.To(dt)
	}
	x := random(229, 307)
	return []bigOperand{
		{"dense", x, random(229, 307)},
		{"row", x, random(307)},
		{"column", x, random(229, 1)},
		{"transposed", x, random(307, 229).Transpose(0, 1)},
		{"slices", random(229, 620).Narrow(1, 1, 307), random(229, 620).Narrow(1, 7, 307)},
		{"short rows", random(10000, 7), random(7)},
		{"short columns", random(10000, 7), random(10000, 1)},
		{"few rows", random(3, 23001), random(3, 1)},
		{"channels", random(11, 5, 37, 41), random(5, 1, 1)},
	}
}

// sameBits fails unless f returns the same bytes with one to four threads. f may be undefined for
// its dtype.
func sameBits(t *testing.T, what string, f func() *tensor.Tensor) {
	t.Helper()
	defer kernel.SetThreads(kernel.Threads())
	var want []byte
	for threads := 1; threads <= 4; threads++ {
		kernel.SetThreads(threads)
		var got []byte
		if err := tensor.Catch(func() {
			r := f().Contiguous()
			got = bytes.Clone(tensor.Bytes(r))
			r.Close()
		}); err != nil {
			return
		}
		if threads == 1 {
			want = got
		} else if !bytes.Equal(got, want) {
			i := 0
			for got[i] == want[i] {
				i++
			}
			t.Errorf("%s: with %d threads byte %d of %d differs from the result with one thread", what, threads, i,
				len(want))
		}
	}
}

func TestOperations_ReturnTheSameBitsForAnyNumberOfThreads(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.BFloat16, tensor.Int64, tensor.Uint8,
		tensor.Complex64} {
		for _, o := range bigOperands(dt) {
			for _, op := range device.Ops() {
				sameBits(t, fmt.Sprint(op.Name, " of ", dt, ", ", o.name), func() *tensor.Tensor {
					return devicetest.Apply(op)(o.x, o.y)
				})
			}
			for _, to := range []tensor.DType{tensor.Bool, tensor.Float16, tensor.Float32, tensor.Float64, tensor.Int32,
				tensor.Complex128} {
				sameBits(t, fmt.Sprint(dt, " to ", to, ", ", o.name), func() *tensor.Tensor { return o.x.To(to) })
				sameBits(t, fmt.Sprint(dt, " to ", to, ", second of ", o.name), func() *tensor.Tensor {
					return tensor.New(to, o.x.Shape()...).CopyFrom(o.y)
				})
			}
			for name, f := range map[string]func() *tensor.Tensor{
				"Where":     func() *tensor.Tensor { return tensor.Where(tensor.Gt(o.x, o.y), o.x, o.y) },
				"Clamp":     func() *tensor.Tensor { return tensor.Clamp(o.x, 0, 1) },
				"Axpy":      func() *tensor.Tensor { return o.x.Clone().AxpyInPlace(2, o.y) },
				"Clone":     func() *tensor.Tensor { return o.x.Clone() },
				"Transpose": func() *tensor.Tensor { return o.x.Transpose(0, 1).Clone() },
				"Flip":      func() *tensor.Tensor { return tensor.Flip(o.x, 1).Clone() },
			} {
				sameBits(t, fmt.Sprint(name, " of ", dt, ", ", o.name), f)
			}
		}
	}
}

func TestReductions_ReturnTheSameBitsForAnyNumberOfThreads(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int64, tensor.Bool} {
		for _, o := range bigOperands(dt) {
			for name, f := range map[string]func(t *tensor.Tensor, dims ...int) *tensor.Tensor{
				"Sum": tensor.Sum, "Mean": tensor.Mean, "Amax": tensor.Amax, "Amin": tensor.Amin, "Var": tensor.Var,
				"Prod": tensor.Prod, "Any": tensor.Any, "All": tensor.All,
			} {
				for _, dims := range [][]int{nil, {0}, {1}, {-1}} {
					sameBits(t, fmt.Sprint(name, dims, " of ", dt, ", ", o.name), func() *tensor.Tensor {
						return f(o.x, dims...)
					})
				}
			}
			for _, dim := range []int{0, 1} {
				sameBits(t, fmt.Sprint("Argmax ", dim, " of ", dt, ", ", o.name), func() *tensor.Tensor {
					return tensor.Argmax(o.x, dim)
				})
			}
		}
	}
}

func TestRandomNumbers_AreTheSameForAnyNumberOfThreads(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16} {
		for name, f := range map[string]func(g *tensor.Generator, x *tensor.Tensor) *tensor.Tensor{
			"uniform":   func(g *tensor.Generator, x *tensor.Tensor) *tensor.Tensor { return x.FillUniform(g, -1, 1) },
			"normal":    func(g *tensor.Generator, x *tensor.Tensor) *tensor.Tensor { return x.FillNormal(g, 0, 1) },
			"Bernoulli": func(g *tensor.Generator, x *tensor.Tensor) *tensor.Tensor { return x.FillBernoulli(g, 0.3) },
		} {
			for _, n := range []int{100_001, 300_000} {
				sameBits(t, fmt.Sprint(n, " ", name, " of ", dt), func() *tensor.Tensor {
					g := tensor.NewGenerator(7)
					g.Uint64()
					x := f(g, tensor.Empty(dt, n))
					// the generator must continue after the last number
					return tensor.Cat(0, x.To(tensor.Float64), tensor.FromSlice([]float64{g.Float64()}))
				})
			}
		}
	}
}
