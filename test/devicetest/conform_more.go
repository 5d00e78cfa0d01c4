package devicetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// placing returns a function that applies f along the first of the given dimensions, or, without
// dimensions, over all elements of t as a vector.
func placing(f func(t *tensor.Tensor, dim int) *tensor.Tensor) func(t *tensor.Tensor, dims ...int) *tensor.Tensor {
	return func(t *tensor.Tensor, dims ...int) *tensor.Tensor {
		if len(dims) == 0 {
			return f(t.Reshape(-1), 0)
		}
		return f(t, dims[0])
	}
}

func reductions(t *testing.T, dev tensor.Device) {
	type reduce = func(t *tensor.Tensor, dims ...int) *tensor.Tensor
	for name, f := range map[string]reduce{
		"Sum": tensor.Sum, "Prod": tensor.Prod, "Amax": tensor.Amax, "Amin": tensor.Amin, "Mean": tensor.Mean,
		"Var": tensor.Var,
		"Std": tensor.Std, "All": tensor.All, "Any": tensor.Any,
		"Argmax": placing(tensor.Argmax), "Argmin": placing(tensor.Argmin),
	} {
		for _, dt := range allDTypes {
			if !defined(func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0]) }, dt) {
				continue
			}
			t.Run(name+" "+dt.String(), func(t *testing.T) {
				x := numbersOf(dt, 1).View(2, 3, 10)
				for _, y := range []*tensor.Tensor{x, x.Transpose(0, 2), x.Slice(2, 1, 10, 3), x.Select(1, 1),
					x.Select(0, 0).Select(0, 0)} {
					for d := range y.Dims() {
						compare(t, dev, 2e-6, func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0], d) }, y)
					}
					compare(t, dev, 2e-6, func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0]) }, y)
				}
				compare(t, dev, 2e-6, func(in ...*tensor.Tensor) *tensor.Tensor { return f(in[0], 0, 2) }, x)
			})
		}
	}
	g := tensor.NewGenerator(4)
	for _, shape := range [][]int{{100_003}, {3, 5000}, {5000, 3}, {1000, 33}} {
		x := tensor.RandN(tensor.Float32, g, shape...)
		for d := range shape {
			compare(t, dev, 1e-5, func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Sum(in[0], d) }, x)
			compare(t, dev, 0, func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Argmax(in[0], d) }, x)
		}
	}
	compare(t, dev, 0, func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Sum(in[0], 0) },
		tensor.New(tensor.Float32, 0, 3))
	compare(t, dev, 0, func(in ...*tensor.Tensor) *tensor.Tensor { v, _ := tensor.Max(in[0], 1); return v },
		tensor.RandN(tensor.Float32, g, 4, 9))
}

func products(t *testing.T, dev tensor.Device) {
	g := tensor.NewGenerator(5)
	matmul := func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.MatMul(in[0], in[1]) }
	for _, dt := range floats {
		for _, s := range [][2][]int{
			{{3, 4}, {4, 5}}, {{1, 7}, {7, 1}}, {{65, 33}, {33, 70}}, {{4}, {4}}, {{3, 4}, {4}},
			{{4}, {4, 5}}, {{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4, 5}},
			{{2, 1, 3, 4}, {5, 4, 6}}, {{3, 0}, {0, 5}}, {{0, 4}, {4, 5}}, {{128, 784}, {784, 10}},
		} {
			t.Run(fmt.Sprint(dt, s), func(t *testing.T) {
				x, y := tensor.RandN(dt, g, s[0]...), tensor.RandN(dt, g, s[1]...)
				compare(t, dev, 1e-4, matmul, x, y)
				if x.Dims() < 2 || y.Dims() < 2 {
					return
				}
				compare(t, dev, 1e-4, matmul, x.Transpose(-1, -2).Contiguous().Transpose(-1, -2), y)
				compare(t, dev, 1e-4, matmul, x, y.Transpose(-1, -2).Contiguous().Transpose(-1, -2))
			})
		}
		wide := tensor.RandN(dt, g, 8, 12)
		compare(t, dev, 1e-4, matmul, wide.Slice(1, 0, 12, 2), wide.Narrow(0, 1, 6).Narrow(1, 3, 5))
	}
}

func indices(t *testing.T, dev tensor.Device) {
	idx := tensor.FromSlice([]int64{2, 0, 1, 2, 1, 1, 0, 0}, 2, 4)
	row := tensor.FromSlice([]int64{3, 1, 1}, 3)
	distinct := tensor.FromSlice([]int64{3, 1, 4}, 3) // for duplicate indices, either value may win
	for _, dt := range append(slices.Clone(needed), tensor.Float16) {
		t.Run(dt.String(), func(t *testing.T) {
			x, src := numbersOf(dt, 1), numbersOf(dt, 2)
			for name, f := range map[string]func(in ...*tensor.Tensor) *tensor.Tensor{
				"Gather": func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Gather(in[0], 0, in[2]) },
				"Gather 1": func(in ...*tensor.Tensor) *tensor.Tensor {
					return tensor.Gather(in[0].Transpose(0, 1), 1, in[2])
				},
				"IndexSelect": func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.IndexSelect(in[0], 1, in[3]) },
				"Index":       func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Index(in[0], in[3]) },
				"Scatter": func(in ...*tensor.Tensor) *tensor.Tensor {
					return in[0].ScatterInPlace(0, tensor.Add(in[4], in[4].Number(1)).View(3, 1), in[1])
				},
				"ScatterAdd": func(in ...*tensor.Tensor) *tensor.Tensor {
					return in[0].ScatterAddInPlace(1, in[2], in[1])
				},
				"IndexAdd": func(in ...*tensor.Tensor) *tensor.Tensor {
					return in[0].IndexAddInPlace(0, in[3], in[1].Narrow(0, 0, 3))
				},
				"MaskedSelect": func(in ...*tensor.Tensor) *tensor.Tensor {
					return tensor.MaskedSelect(in[0], tensor.Gt(in[0], in[1]))
				},
				"Nonzero": func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Nonzero(in[0]) },
				"Argsort": func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Argsort(in[0], 1, true) },
				"CumSum":  func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.CumSum(in[0], 0) },
				"Cat":     func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Cat(1, in[:2]...) },
				"Flip":    func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Flip(in[0], 1, 0) },
				"Stack":   func(in ...*tensor.Tensor) *tensor.Tensor { return tensor.Stack(1, in[:2]...) },
			} {
				t.Run(name, func(t *testing.T) { compare(t, dev, 1e-6, f, x.Clone(), src, idx, row, distinct) })
			}
		})
	}
	wild := []int64{6, -7, math.MaxInt64, math.MinInt64, 1 << 40, -1 << 40}
	strayed(t, dev, wild)
	for _, bad := range append(wild, -1) {
		there := On(t, dev, tensor.FromSlice([]int64{0, bad}, 2))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("index %d of 6 is in range", bad)
				}
			}()
			tensor.IndexSelect(On(t, dev, numbersOf(tensor.Float32, 1)), 0, there)
		}()
	}
}

// strayed checks that dev does not access memory outside of a tensor if another process has
// changed the indices to index, which has invalid ones, after they were validated.
func strayed(t *testing.T, dev tensor.Device, index []int64) {
	n := len(index)
	there := On(t, dev, tensor.FromSlice(index, n))
	x := On(t, dev, tensor.Full(tensor.Float32, 7, 6))
	for _, size := range []int{4, 2} {
		in := x.Narrow(0, 2, size)
		y := On(t, dev, tensor.New(tensor.Float32, n))
		if v, found, err := ComputerOn(dev).Gather(OperandOf(y), OperandOf(in), OperandOf(there), 0); err != nil ||
			!found || !slices.Contains(index, v) {
			t.Errorf("of %v the device finds %d, %v, %v", index, v, found, err)
		}
		Same(t, y, tensor.Full(tensor.Float32, 7, n), 0)
		testutil.NoError(t, ComputerOn(dev).Scatter(OperandOf(in), OperandOf(y), OperandOf(there), 0, false))
		Same(t, x, tensor.Full(tensor.Float32, 7, 6), 0)
	}
	scores, loss := On(t, dev, tensor.Full(tensor.Float32, 7, n, 3)), On(t, dev, tensor.New(tensor.Float32))
	testutil.NoError(t, ComputerOn(dev).Rows(device.RowOp{Kind: device.RowNLL, Factor: 1}, OperandOf(loss),
		OperandOf(scores), OperandOf(there)))
	Same(t, loss, tensor.Full(tensor.Float32, float64(7*n)), 0)
}

func sequences(t *testing.T, dev tensor.Device) {
	const n = 1031
	key := tensor.NewGenerator(9).Uint64()
	f32, f64 := tensor.Float32, tensor.Float64
	make := func(f func(g *tensor.Generator) (*tensor.Tensor, error)) *tensor.Tensor {
		x, err := f(tensor.NewGenerator(9))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	want := func(dt tensor.DType, s device.Sequence) *tensor.Tensor {
		s.Key = key
		v := tensor.New(f64, n)
		number := numberOf(s.Kind, dt)
		for i := range n {
			tensor.Data[float64](v)[i] = number(s, uint64(i))
		}
		return v.To(dt)
	}
	for _, dt := range floats {
		bits := map[tensor.DType]int{f32: 24, f64: 53}[dt]
		unit := make(func(g *tensor.Generator) (*tensor.Tensor, error) { return tensor.On(dev).Rand(dt, g, n) })
		Same(t, unit, want(dt, device.Sequence{Kind: device.RandomUniform, B: 1, Bits: bits}), 0)
		Same(t, On(t, dev, tensor.New(dt, n)).FillUniform(tensor.NewGenerator(9), -2, 5),
			want(dt, device.Sequence{Kind: device.RandomUniform, A: -2, B: 5, Bits: bits}),
			map[tensor.DType]float64{f32: 1e-6}[dt])
		normal := make(func(g *tensor.Generator) (*tensor.Tensor, error) { return tensor.On(dev).RandN(dt, g, n) })
		Same(t, normal, want(dt, device.Sequence{Kind: device.RandomNormal, B: 1}),
			map[tensor.DType]float64{f32: 1e-6, f64: 1e-14}[dt])
		empty := make(func(*tensor.Generator) (*tensor.Tensor, error) { return tensor.On(dev).Empty(dt, n) })
		kept := empty.FillBernoulli(tensor.NewGenerator(9), 0.3)
		Same(t, kept, want(dt, device.Sequence{Kind: device.RandomBernoulli, A: 0.3}), 0)
		s := device.Sequence{Kind: device.RandomKept, Key: key, A: 0.3, B: 1.5}
		doubled := On(t, dev, tensor.Full(dt, 2, n))
		testutil.NoError(t, ComputerOn(dev).Generate(OperandOf(doubled), s, OperandOf(doubled)))
		Same(t, doubled, want(dt, s).MulScalarInPlace(2), 0)
	}
	for _, dt := range []tensor.DType{f32, f64, tensor.Int64, tensor.Int32, tensor.Float16} {
		x, err := tensor.On(dev).Arange(dt, -3, 400, 1.5)
		if err != nil {
			t.Fatal(err)
		}
		Same(t, x, tensor.Arange(dt, -3, 400, 1.5), 0)
	}
	dice := make(func(g *tensor.Generator) (*tensor.Tensor, error) { return tensor.On(dev).RandInt(g, -2, 5, n) })
	rolls := tensor.New(tensor.Int64, n)
	for i := range n {
		tensor.Data[int64](rolls)[i] = Integer(device.Sequence{Key: key, From: -2, Count: 7}, uint64(i))
	}
	Same(t, dice, rolls, 0)
	half := make(func(g *tensor.Generator) (*tensor.Tensor, error) { return tensor.On(dev).Rand(tensor.Float16, g, n) })
	if least, most := tensor.Amin(half).Item(), tensor.Amax(half).Item(); least < 0 || most >= 1 || most < 0.9 {
		t.Errorf("halves are from %v to %v", least, most)
	}
	odd := On(t, dev, tensor.New(f64, n+1).Narrow(0, 1, n)) // not made of whole vectors
	Same(t, odd.FillUniform(tensor.NewGenerator(9), 0, 1),
		want(f64, device.Sequence{Kind: device.RandomUniform, B: 1, Bits: 53}), 0)
	Same(t, odd.FillNormal(tensor.NewGenerator(9), 3, 2),
		want(f64, device.Sequence{Kind: device.RandomNormal, A: 3, B: 2}), 1e-14)
	Same(t, odd.FillBernoulli(tensor.NewGenerator(9), 0.3),
		want(f64, device.Sequence{Kind: device.RandomBernoulli, A: 0.3}), 0)
	testutil.NoError(t, ComputerOn(dev).Generate(OperandOf(odd), device.Sequence{A: 3, B: 0.5}))
	Same(t, odd, tensor.Arange(f64, 3, 3+n/2., 0.5), 0)
	grid := On(t, dev, tensor.New(f32, 5, 7))
	turned := grid.Transpose(0, 1).FillUniform(tensor.NewGenerator(9), 0, 1)
	Same(t, turned.Reshape(35), want(f32,
		device.Sequence{Kind: device.RandomUniform, B: 1, Bits: 24}).Narrow(0, 0, 35), 0)
}

// rows compares the row operations of dev with the reference, a simulated device, for rows of
// many lengths, some with infinite elements or NaN.
func rows(t *testing.T, dev tensor.Device) {
	ref, g := New("reference"), tensor.NewGenerator(10)
	for _, dt := range append(slices.Clone(floats), tensor.Float16, tensor.BFloat16) {
		for _, shape := range [][2]int{{1, 1}, {3, 10}, {300, 2}, {2, 257}, {5, 700}, {600, 1}} {
			t.Run(fmt.Sprint(dt, shape), func(t *testing.T) {
				n, size := shape[0], shape[1]
				x, dy := tensor.RandN(tensor.Float64, g, n, size).MulScalarInPlace(5), tensor.RandN(dt, g, n, size)
				for i, v := range []float64{math.Inf(-1), 800, math.Inf(1), math.NaN(), -1e4} {
					tensor.SetAt(x, v, i%n, 7*i%size)
				}
				classes := tensor.RandInt(g, 0, size, n)
				w, b := tensor.RandN(dt, g, size), tensor.RandN(dt, g, size)
				type results struct {
					y, dx, loss, dlogp *tensor.Tensor
					more               []*tensor.Tensor
				}
				on := func(d tensor.Device) results {
					k, c := ComputerOn(d), On(t, d, classes)
					r := results{y: empty(t, d, dt, n, size), dx: empty(t, d, dt, n, size), loss: empty(t, d, dt),
						dlogp: empty(t, d, dt, n, size)}
					testutil.NoError(t, k.Rows(device.RowOp{Kind: device.RowLogSoftmax}, OperandOf(r.y),
						OperandOf(On(t, d, x.To(dt)))))
					testutil.NoError(t, k.Rows(device.RowOp{Kind: device.RowLogSoftmaxGradient}, OperandOf(r.dx),
						OperandOf(r.y), OperandOf(On(t, d, dy))))
					testutil.NoError(t, k.Rows(device.RowOp{Kind: device.RowNLL, Factor: -0.5}, OperandOf(r.loss),
						OperandOf(On(t, d, dy)), OperandOf(c)))
					testutil.NoError(t, k.Rows(device.RowOp{Kind: device.RowNLLGradient, Factor: -0.5},
						OperandOf(r.dlogp), OperandOf(c), OperandOf(r.loss)))
					for _, more := range []struct {
						kind device.RowKind
						in   []*tensor.Tensor
					}{
						{device.RowSoftmax, []*tensor.Tensor{x.To(dt)}},
						{device.RowSoftmaxGradient, []*tensor.Tensor{dy, b.Expand(n, size).Contiguous()}},
						{device.RowNorm, []*tensor.Tensor{dy}},
						{device.RowNorm, []*tensor.Tensor{dy, w, b}},
						{device.RowNormGradient, []*tensor.Tensor{dy, b.Expand(n, size).Contiguous()}},
						{device.RowNormGradient, []*tensor.Tensor{dy, b.Expand(n, size).Contiguous(), w}},
					} {
						out, in := empty(t, d, dt, n, size), []operand{}
						for _, x := range more.in {
							in = append(in, OperandOf(On(t, d, x)))
						}
						testutil.NoError(t, k.Rows(device.RowOp{Kind: more.kind, Factor: 0.1}, OperandOf(out), in...))
						r.more = append(r.more, out)
					}
					return r
				}
				got, want := on(dev), on(ref)
				Same(t, got.y, near(t, want.y), 1e-6)
				Same(t, got.dx, near(t, want.dx), 1e-5)
				Same(t, got.loss, near(t, want.loss), 1e-5)
				Same(t, got.dlogp, near(t, want.dlogp), 1e-5)
				for i, more := range got.more {
					Same(t, more, near(t, want.more[i]), 1e-5)
				}
			})
		}
	}
	whole := empty(t, dev, tensor.Int64, 2, 2)
	if err := ComputerOn(dev).Rows(device.RowOp{}, OperandOf(whole), OperandOf(whole)); !errors.Is(err,
		tensor.ErrUnsupported) {
		t.Errorf("the logarithm of integers' softmax: %v", err)
	}
}
