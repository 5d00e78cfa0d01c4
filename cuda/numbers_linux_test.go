package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cuda"
	ops "github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

var numeric = []tensor.DType{tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}

// onBoth has f compute on the host and on dev, and compares.
func onBoth(t *testing.T, dev tensor.Device, tolerance float64, f func(in ...*tensor.Tensor) *tensor.Tensor,
	in ...*tensor.Tensor) {
	t.Helper()
	there := make([]*tensor.Tensor, len(in))
	for i, x := range in {
		there[i] = devicetest.On(t, dev, x)
	}
	devicetest.Same(t, f(there...), f(in...), tolerance)
}

// A kernel takes several elements at once, if it can; the last ones, those at an odd place, and
// dtypes of all widths have to come out as well.
func TestKernel_LeavesNoElementOut(t *testing.T) {
	dev := onDevice(t)
	for _, dt := range append(numeric, tensor.Bool, tensor.Complex64, tensor.Complex128) {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 9, 255, 257} {
			for skip := range 2 {
				whole := tensor.Arange(tensor.Float64, 1, float64(n+skip+1), 1)
				there := devicetest.On(t, dev, whole.To(dt)).Narrow(0, skip, n)
				here := whole.To(dt).Narrow(0, skip, n)
				devicetest.Same(t, there.Clone(), here, 0)
				devicetest.Same(t, there.To(tensor.Complex64), here.To(tensor.Complex64), 0)
				if dt != tensor.Complex64 && dt != tensor.Complex128 {
					devicetest.Same(t, tensor.Add(there, there), tensor.Add(here, here), 0)
				}
			}
		}
	}
	collected(t, 1)
}

// Sines and quotients of what is very large.
func TestKernel_TakesLargeArguments(t *testing.T) {
	dev := onDevice(t)
	inf, tiny := math.Inf(1), math.SmallestNonzeroFloat64
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for size, tolerance := range map[float64]float64{1e3: 1e-7, 1e9: 1e-7, 1e15: 1e-7, 1e18: 1e-6, 1e22: 1e-6} {
			x := tensor.FromSlice([]float64{size, -size, size / 3, -size / 7}, 4).To(dt)
			onBoth(t, dev, tolerance, func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Sin(in[0]) }, x)
			onBoth(t, dev, tolerance, func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Cos(in[0]) }, x)
		}
		x := devicetest.On(t, dev, tensor.FromSlice([]float64{1e30, 3e38, -2e38}, 3).To(dt))
		if most := tensor.Amax(tensor.Abs(tensor.Cat(
			0, tensor.Sin(x), tensor.Cos(x)))).Item(); !(most <= 1) {
			t.Errorf("a sine of %v is %v", dt, most)
		}
	}
	left := tensor.FromSlice([]float64{1e300, -1e300, math.MaxFloat64, math.MaxFloat64, -math.MaxFloat64,
		1e200, 5.5, -5.5, 5.5, inf, 3, math.NaN(), 0, 7}, 14)
	right := tensor.FromSlice([]float64{1e-300, 1e-300, tiny, 3 * tiny, -7e-310, 1e-107, inf, inf, -inf, 2,
		math.NaN(), 3, -3, 1e-5}, 14)
	onBoth(t, dev, 0, func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Remainder(in[0], in[1]) }, left, right)
	onBoth(t, dev, 1e-15,
		func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.FloorDivide(in[0], in[1]) }, left, right)
	collected(t, 1)
}

// Fractions become whole numbers by way of int64: there what is too large is the largest, and NaN
// the least; narrower ones have the low bits of that.
func TestKernel_FractionsBecomeWholeNumbers(t *testing.T) {
	dev := onDevice(t)
	for _, from := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		x := tensor.FromSlice([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.9, 2.9, -2.9, 300, -300,
			3e9, -3e9, 1e30, math.Copysign(0, -1)}, 12).To(from)
		values := tensor.Data[float64](x.To(tensor.Float64))
		wide := tensor.New(tensor.Int64, len(values))
		for i, v := range values {
			n := int64(math.MinInt64)
			switch {
			case v >= 1<<63:
				n = math.MaxInt64
			case v > -1<<63:
				n = int64(v)
			}
			tensor.SetAt(wide, n, i)
		}
		there := devicetest.On(t, dev, x)
		for _, to := range []tensor.DType{tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64} {
			devicetest.Same(t, there.To(to), wide.To(to), 0)
		}
		onBoth(t, dev, 0, func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].To(tensor.Bool) }, x)
	}
	collected(t, 1)
}

// Fractions that do not fit are rounded to the nearest, halves of the last place to even, and
// become infinite or nothing.
func TestKernel_FractionsAreRounded(t *testing.T) {
	dev := onDevice(t)
	var values []float64
	for _, v := range []float64{1, 1 + 1./256, 1 + 3./256, 1 + 1./512, 1 + 1./2048, 1 + 3./2048, 65504, 65519,
		65520, math.MaxFloat32, 1e300, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1.8p-24,
		0x1.ffcp-15, 0x1p-133, 0x1p-134, 0x1.8p-134, 0x1p-149, 0x1p-150, 0x1.8p-150, math.Inf(1), math.NaN(),
		0, 3.3e-5} {
		values = append(values, v, -v, math.Nextafter(v, 0), float64(math.Nextafter32(float32(v), 0)))
	}
	x := tensor.FromSlice(values, len(values))
	for _, from := range []tensor.DType{tensor.Float64, tensor.Float32} {
		for _, to := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32} {
			t.Run(from.String()+" to "+to.String(), func(t *testing.T) {
				onBoth(t, dev, 0,
					func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].To(to).To(tensor.Float64) }, x.To(from))
			})
		}
	}
	collected(t, 1)
}

// Products and windows of what is not a float32 or a float64.
func TestKernel_OtherDTypesMultiplyAndPool(t *testing.T) {
	dev, g := onDevice(t), tensor.NewGenerator(1)
	ref := devicetest.New("reference")
	for _, dt := range numeric[:7] {
		t.Run(dt.String(), func(t *testing.T) {
			whole := func(shape ...int) *tensor.Tensor {
				return tensor.RandInt(g, 0, 3, shape...).To(dt)
			}
			a, b := whole(2, 5, 17), whole(2, 17, 3)
			for _, x := range []*tensor.Tensor{a, a.Transpose(1, 2).Contiguous().Transpose(1, 2)} {
				onBoth(t, dev, 0,
					func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.MatMul(in[0], in[1]) }, x, b)
			}
			w := ops.Window{Size: [2]int{3, 2}, Stride: [2]int{2, 1}, Padding: [2]int{1, 1}}
			images := whole(1, 2, 5, 4)
			outH, outW := w.Out(5, 4)
			places := outH * outW
			on := func(d tensor.Device) (all []*tensor.Tensor) {
				for _, shape := range [][]int{{1, 12, places}, {1, 2, 5, 4}, {2, places}} {
					x, err := tensor.On(d).Zeros(dt, shape...)
					testutil.NoError(t, err)
					all = append(all, x)
				}
				at, err := tensor.On(d).Zeros(tensor.Int64, 2, places)
				testutil.NoError(t, err)
				c, x := devicetest.ComputerOn(d), devicetest.On(t, d, images)
				testutil.NoError(t, c.Unfold(devicetest.OperandOf(all[0]), devicetest.OperandOf(x), w))
				testutil.NoError(t, c.Fold(devicetest.OperandOf(all[1]), devicetest.OperandOf(all[0]), w))
				testutil.NoError(t, c.MaxPool(devicetest.OperandOf(all[2]), devicetest.OperandOf(at),
					devicetest.OperandOf(x.View(2, 5, 4)), w))
				return append(all, at)
			}
			want := on(ref)
			for i, got := range on(dev) {
				near, err := want[i].CPU()
				testutil.NoError(t, err)
				t.Run(fmt.Sprint(i), func(t *testing.T) { devicetest.Same(t, got, near, 0) })
			}
		})
	}
	collected(t, 1)
}

// Threads of a warp may go apart on a GPU. What the threads of a block tell each other, and what
// they add atomically, does not hang on that.
func TestKernel_DoesNotRelyOnThreadsInStep(t *testing.T) {
	dev, g := onDevice(t), tensor.NewGenerator(1)
	_, err := tensor.On(dev).Zeros(tensor.Float32, 1) // so that there is a driver
	testutil.NoError(t, err)
	if s := cuda.Simulator(); s != nil {
		s.Loosen(true)
	}
	for name, f := range map[string]func(in ...*tensor.Tensor) *tensor.Tensor{
		"sums":      func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Sum(in[0], 1) },
		"of all":    func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Sum(in[0]) },
		"columns":   func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Amax(in[0], 0) },
		"places":    func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Argmin(in[0], 1) },
		"variances": func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Var(in[0], 1) },
		"products":  func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.MatMul(in[0], in[0].T()) },
		"scattered": func(in ...*tensor.Tensor) *tensor.Tensor {
			return in[1].NewZeros(in[1].DType(), in[1].Shape()...).IndexAddInPlace(0, in[2], in[1])
		},
		"softmax": func(in ...*tensor.Tensor) *tensor.Tensor {
			x := autograd.NewParam("x", in[0])
			autograd.NLLLoss(autograd.LogSoftmax(x.Var(), -1), in[2], autograd.Classification{}).Backward()
			return x.Grad
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := tensor.RandN(tensor.Float32, g, 5, 300)
			onBoth(t, dev, 1e-5, f, x, tensor.RandInt(g, 0, 3, 5, 300).To(tensor.Int8),
				tensor.FromSlice([]int64{1, 1, 0, 1, 4}, 5))
		})
	}
	collected(t, 1)
}

// Functions of what is at the edges of where they are defined, of the signs of zeros, and where a
// kernel goes over to another series.
func TestKernel_FunctionsAtTheirEdges(t *testing.T) {
	dev := onDevice(t)
	var values []float64
	for _, v := range []float64{0, math.SmallestNonzeroFloat64, 0x1p-1030, 1e-300, 1e-20, 1e-8, 0.1, 0.4,
		math.Sqrt2 / 2, 0.9999999999, 1, 1.0000000001, math.Sqrt2, 1.5, 2, 2.5, 5.9, 6, 21.9, 22.1,
		88.7, 700, 709.78, 709.79, 744, 746, 1e20, 0x1p53 + 2, 1e300, math.MaxFloat64, math.Inf(1)} {
		values = append(values, v, -v, math.Nextafter(v, math.Inf(1)))
	}
	x := tensor.FromSlice(append(values, math.NaN()), len(values)+1)
	for _, o := range ops.Ops() {
		if o.Arity != 1 || o.Name == "Sin" || o.Name == "Cos" { // whose error grows with the number of turns
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			exactly(t, dev, 4, o.Name != "ReLU",
				devicetest.Apply(o), x)
		})
	}
	some := tensor.FromSlice([]float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 63, 64, 65,
		-64, -65, 0.3, 1e300, -1e300, math.Inf(1), math.Inf(-1), math.NaN(), 1e-300}, 22)
	units := map[string]float64{"Power": 200, "Logaddexp": 16}
	for _, o := range ops.Ops() {
		if o.Arity != 2 {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			exactly(t, dev, max(units[o.Name], 4), o.Name != "Maximum" && o.Name != "Minimum",
				func(in ...*tensor.Tensor) *tensor.Tensor {
					return devicetest.Apply(o)(in[0].Unsqueeze(1), in[0])
				}, some)
		})
	}
	collected(t, 1)
}

func TestKernel_FunctionsOfManyNumbers(t *testing.T) {
	dev, g := onDevice(t), tensor.NewGenerator(8)
	parts := []*tensor.Tensor{tensor.RandN(tensor.Float32, g, 300).MulScalarInPlace(0x1p-10).AddScalarInPlace(1)}
	for _, scale := range []float64{1e-6, 0.1, 1, 10, 1e3, 9e4, 1e6} {
		parts = append(parts, tensor.RandN(tensor.Float32, g, 300).MulScalarInPlace(scale))
	}
	x := tensor.Cat(0, parts...)
	for _, o := range ops.Ops() {
		if o.Arity == 1 {
			t.Run(o.Name, func(t *testing.T) {
				exactly(t, dev, 4, false, devicetest.Apply(o), x)
			})
		}
	}
	collected(t, 1)
}

// exactly compares what f makes on dev with what it makes of Float64 on the host: as far as units
// of the last place of x's dtypes go, and the signs of zeros unless one is as good as the other.
func exactly(t *testing.T, dev tensor.Device, units float64, signs bool,
	f func(in ...*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) {
	t.Helper()
	for dt, unit := range map[tensor.DType]float64{tensor.Float64: 0x1p-52, tensor.Float32: 0x1p-23} {
		x := x.To(dt)
		there, err := f(devicetest.On(t, dev, x)).CPU()
		testutil.NoError(t, err)
		want := tensor.Data[float64](f(x.To(tensor.Float64)).To(there.DType()).To(tensor.Float64))
		for i, g := range tensor.Data[float64](there.To(tensor.Float64)) {
			w := want[i]
			near := g == w || g != g && w != w ||
				math.Abs(g-w) <= max(units*unit*math.Abs(w), 2*math.SmallestNonzeroFloat64)
			if !near || signs && g == 0 && math.Signbit(g) != math.Signbit(w) {
				t.Errorf("%v: element %d is %v, want %v", dt, i, g, w)
			}
		}
	}
}

// What has more elements than a kernel counts is done in parts, and what cannot be is an error.
func TestKernel_MoreThanItCountsIsDoneInParts(t *testing.T) {
	t.Setenv(cuda.BLASKey, "none") // it counts farther
	dev, g := onDevice(t), tensor.NewGenerator(1)
	defer cuda.Limit(64, 2)()
	x, w := tensor.RandN(tensor.Float32, g, 2, 3, 5, 5), tensor.RandN(tensor.Float32, g, 2, 3, 2, 2)
	for name, f := range map[string]func(in ...*tensor.Tensor) *tensor.Tensor{
		"elements": func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Add(in[0], in[0].Transpose(2, 3)) },
		"numbers":  func(in ...*tensor.Tensor) *tensor.Tensor { return in[0].MulScalarInPlace(3) },
		"products": func(in ...*tensor.Tensor) *tensor.Tensor {
			return tensor.MatMul(in[0].View(6, 5, 5), in[0].View(6, 5, 5).Transpose(1, 2))
		},
		"windows": func(in ...*tensor.Tensor) *tensor.Tensor {
			x, w := autograd.NewParam("x", in[0]), autograd.NewParam("w", in[1])
			y := autograd.MaxPool2d(autograd.Conv2d(x.Var(), w.Var(), nil, autograd.Window{}),
				autograd.Window{Size: [2]int{2, 2}, Stride: [2]int{1, 1}})
			autograd.Sum(autograd.Mul(y, y)).Backward()
			return tensor.Cat(0, x.Grad.View(150), w.Grad.View(24))
		},
	} {
		t.Run(name, func(t *testing.T) { onBoth(t, dev, 1e-4, f, x.Clone(), w) })
	}
	drawn := devicetest.On(t, dev, tensor.New(tensor.Float64, 200)).FillUniform(tensor.NewGenerator(3), 0, 1)
	undo := cuda.Limit(1<<20, 1<<10)
	again := devicetest.On(t, dev, tensor.New(tensor.Float64, 200)).FillUniform(tensor.NewGenerator(3), 0, 1)
	undo()
	here, err := again.CPU()
	testutil.NoError(t, err)
	devicetest.Same(t, drawn, here, 0)
	there := devicetest.On(t, dev, x.View(2, 75))
	for name, f := range map[string]func(){
		"a sum of them": func() { tensor.Sum(there, 1) },
		"rows":          func() { autograd.LogSoftmax(autograd.Const(there), -1) },
		"a plane": func() {
			autograd.MaxPool2d(autograd.Const(there.View(1, 1, 10, 15)), autograd.Window{Size: [2]int{2, 2}})
		},
		"a wide product": func() { tensor.MatMul(there, there.T()) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, tensor.ErrUnsupported) {
					t.Error(err)
				}
			}()
			f()
		})
	}
	collected(t, 1)
}
