package devicetest

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

type (
	unaryFunc  = func(a *tensor.Tensor) *tensor.Tensor
	binaryFunc = func(a, b *tensor.Tensor) *tensor.Tensor
)

// singles and pairs are elementwise operations that are not in the table of package device.
var singles = map[string]unaryFunc{
	"Not": tensor.Not, "Clone": (*tensor.Tensor).Clone,
	"Clamp":                      func(a *tensor.Tensor) *tensor.Tensor { return tensor.Clamp(a, -1, 2) },
	"Pow":                        func(a *tensor.Tensor) *tensor.Tensor { return tensor.Pow(a, 3) },
	"with a number on the right": func(a *tensor.Tensor) *tensor.Tensor { return tensor.Sub(a, a.Number(2)) },
	"with a number on the left":  func(a *tensor.Tensor) *tensor.Tensor { return tensor.Div(a.Number(2), a) },
}

var pairs = map[string]binaryFunc{
	"And": tensor.And, "Or": tensor.Or, "Xor": tensor.Xor,
	"Where":       func(a, b *tensor.Tensor) *tensor.Tensor { return tensor.Where(tensor.Lt(a, b), a, b) },
	"Remainder":   func(a, b *tensor.Tensor) *tensor.Tensor { return tensor.Remainder(a, notZero(b)) },
	"FloorDivide": func(a, b *tensor.Tensor) *tensor.Tensor { return tensor.FloorDivide(a, notZero(b)) },
}

// Apply returns the function of package tensor for an operation of [device.Op]. It ignores
// operands beyond the operation's.
func Apply(o *device.Op) func(in ...*tensor.Tensor) *tensor.Tensor {
	f := o.Apply.(func(in ...*tensor.Tensor) *tensor.Tensor)
	return func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[:o.Arity]...) }
}

// notZero returns a copy of b with its zeros replaced by ones.
func notZero(b *tensor.Tensor) *tensor.Tensor {
	return tensor.Where(tensor.Eq(b, b.Number(0)), b.Number(1).To(b.DType()), b)
}

// defined reports whether the operation f is defined for dt on the host: it does not panic.
func defined(f func(in ...*tensor.Tensor) *tensor.Tensor, dt tensor.DType) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	x := tensor.Ones(dt, 2)
	f(x, x)
	return true
}

func elementwise(t *testing.T, dev tensor.Device) {
	all := map[string]func(in ...*tensor.Tensor) *tensor.Tensor{}
	for _, o := range device.Ops() {
		all[o.Name] = Apply(o)
	}
	for name, f := range singles {
		all[name] = func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0]) }
	}
	for name, f := range pairs {
		all[name] = func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0], in[1]) }
	}
	for name, f := range all {
		for _, dt := range allDTypes {
			if !defined(f, dt) {
				continue
			}
			t.Run(name+" "+dt.String(), func(t *testing.T) {
				x, y := numbersOf(dt, 1), numbersOf(dt, 2)
				tolerance := 1e-6
				if dt == tensor.Float64 || dt == tensor.Complex128 {
					tolerance = 1e-14
				}
				for _, l := range forms {
					compare(t, dev, tolerance, f, l.of(x), l.of(y))
				}
				compare(t, dev, tolerance, f, x, y.Narrow(0, 1, 1))
				compare(t, dev, tolerance, f, x.Narrow(1, 1, 1), y.Select(0, 1))
				compare(t, dev, tolerance, f, x, y.Select(0, 1).Select(0, 1))
			})
		}
	}
	long := tensor.RandN(tensor.Float32, tensor.NewGenerator(3), 100_003)
	compare(t, dev, 2e-6, all["Mul"], long, long.Clone())
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		x := tensor.RandInt(tensor.NewGenerator(4), 0, 100, 6, 16).To(dt) // whole vectors in a row, and one for all
		for _, y := range []*tensor.Tensor{x.Select(0, 2), x.Narrow(1, 3, 1), x.Narrow(0, 1, 1),
			x.T().Contiguous().T(), x.View(12, 8).Narrow(1, 0, 4).Reshape(3, 1, 16).Expand(3, 6, 16)} {
			compare(t, dev, 0, all["Add"], x, y)
			compare(t, dev, 0, all["Sub"], y, x.Narrow(1, 0, 1))
		}
		wide := x.View(3, 32)
		compare(t, dev, 0, all["Add"], wide.Narrow(1, 8, 16), wide.Narrow(1, 16, 16))
		compare(t, dev, 0, all["Add"], wide.Narrow(1, 8, 16), wide.Narrow(1, 17, 1)) // separate rows
	}
	gates(t, dev)
	for _, mixed := range [][2]tensor.DType{{tensor.Int64, tensor.Float32}, {tensor.Float32, tensor.Float64},
		{tensor.Bool, tensor.Int32}, {tensor.Float16, tensor.Float32}} {
		compare(t, dev, 2e-6, all["Add"], numbersOf(mixed[0], 1), numbersOf(mixed[1], 2))
	}
}

func conversions(t *testing.T, dev tensor.Device) {
	for _, from := range allDTypes {
		for _, to := range allDTypes {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				x := tensor.Arange(tensor.Float64, 0, 60, 1).MulScalarInPlace(1.5).View(6, 10).To(from)
				for _, l := range forms {
					compare(t, dev, 0,
						func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].To(to).Clone() }, l.of(x))
				}
			})
		}
	}
}

func inPlace(t *testing.T, dev tensor.Device) {
	for name, f := range map[string]binaryFunc{
		"Add": (*tensor.Tensor).AddInPlace, "Sub": (*tensor.Tensor).SubInPlace, "Mul": (*tensor.Tensor).MulInPlace,
		"Div":      (*tensor.Tensor).DivInPlace,
		"CopyFrom": (*tensor.Tensor).CopyFrom, "AddAtomic": (*tensor.Tensor).AddAtomic,
		"Axpy":       func(a, b *tensor.Tensor) *tensor.Tensor { return a.AxpyInPlace(-0.5, b) },
		"Fill":       func(a, _ *tensor.Tensor) *tensor.Tensor { return a.Fill(2.5) },
		"Zero":       func(a, _ *tensor.Tensor) *tensor.Tensor { return a.Zero() },
		"MulScalar":  func(a, _ *tensor.Tensor) *tensor.Tensor { return a.MulScalarInPlace(3) },
		"AddScalar":  func(a, _ *tensor.Tensor) *tensor.Tensor { return a.AddScalarInPlace(3) },
		"MaskedFill": func(a, b *tensor.Tensor) *tensor.Tensor { return a.MaskedFillInPlace(tensor.Gt(a, b), 7) },
		"to itself":  func(a, _ *tensor.Tensor) *tensor.Tensor { return a.AddInPlace(a) },
		"of its own storage": func(a, _ *tensor.Tensor) *tensor.Tensor {
			a.Narrow(0, 0, a.Dim(0)-1).CopyFrom(a.Narrow(0, 1, a.Dim(0)-1))
			return a
		},
		"of a wider dtype": func(a, b *tensor.Tensor) *tensor.Tensor { return a.AddInPlace(b.To(tensor.Float64)) },
	} {
		for _, dt := range floats {
			for _, l := range forms[:6] {
				t.Run(name+" "+dt.String()+" "+l.name, func(t *testing.T) {
					compare(t, dev, 1e-6,
						func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0], in[1]) },
						l.of(numbersOf(dt, 1)), l.of(numbersOf(dt, 2)))
				})
			}
		}
	}
	for _, dt := range []tensor.DType{tensor.Int32, tensor.Int64} {
		compare(t, dev, 0, func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].AddAtomic(in[1]) },
			numbersOf(dt, 1), numbersOf(dt, 2))
	}
}

// gates compares the activation functions for package autograd on dev with the reference, a
// simulated device.
func gates(t *testing.T, dev tensor.Device) {
	ref, g := New("reference"), tensor.NewGenerator(5)
	for _, dt := range append(slices.Clone(floats), tensor.Float16, tensor.BFloat16) {
		numbers := tensor.RandN(tensor.Float64, g, 203).MulScalarInPlace(4)
		for i, v := range []float64{0, math.Inf(1), math.Inf(-1), math.NaN(), 60, -60, 1e-30} {
			tensor.SetAt(numbers, v, i)
		}
		x, dy := numbers.To(dt), tensor.RandN(dt, g, 203)
		a, b := tensor.Scalar(dt, 1.5), tensor.Scalar(dt, 0.0625)
		for name, in := range map[string][]*tensor.Tensor{"GELU": {x}, "GELUGradient": {x, dy}, "Gated": {x, a, b},
			"GatedGradient": {x, dy, a, b}, "ReLUGradient": {x, dy}} {
			on := func(d tensor.Device) *tensor.Tensor {
				out, operands := empty(t, d, dt, 203), []operand{}
				for _, v := range in {
					if v.Dims() > 0 {
						v = On(t, d, v)
					}
					operands = append(operands, OperandOf(v))
				}
				testutil.NoError(t, ComputerOn(d).Map(&device.Op{Name: name, Arity: len(in)}, OperandOf(out),
					operands...))
				return out
			}
			Same(t, on(dev), near(t, on(ref)), map[bool]float64{true: 1e-13, false: 2e-6}[dt == tensor.Float64])
		}
	}
}
