package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// What follows is done in pieces, or another way from some size on: so sizes are around these.

func TestTopK_IsTheBeginOfASort(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.Int64, tensor.Float16, tensor.Float32} {
		for _, n := range []int{1, 2, 63, 64, 65, 130, 1000} {
			x := tensor.RandInt(tensor.NewGenerator(uint64(n)), 0, 9, n, 3).To(dt) // many are equal
			for _, k := range []int{0, 1, 2, n / 3, n / 2, n/2 + 1, 64, 65, n} {
				if k > n {
					continue
				}
				values, indices := tensor.TopK(x, k, 0)
				sorted, order := tensor.Sort(x, 0, true)
				if !tensor.Equal(indices, order.Narrow(0, 0, k)) || !tensor.Equal(values, sorted.Narrow(0, 0, k)) {
					t.Errorf("the first %d of %d of %v are not those of Sort", k, n, dt)
				}
			}
		}
	}
}

// Pieces of floats are passed over that have nothing greater, which NaN is.
func TestTopK_OfLongRowsFindsWhatIsNoNumber(t *testing.T) {
	const n = 5000
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, nans := range [][]int{nil, {0}, {n - 1}, {700, 4000}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 4000, 4001}} {
			x := tensor.RandN(dt, tensor.NewGenerator(uint64(len(nans))), n)
			for _, i := range nans {
				x.Narrow(0, i, 1).Fill(math.NaN())
			}
			_, indices := tensor.TopK(x, 10, 0)
			if want := tensor.Argsort(x, 0, true).Narrow(0, 0, 10); !tensor.Equal(indices, want) {
				t.Errorf("of %v with NaN at %v: %v, want %v", dt, nans, indices, want)
			}
		}
	}
}

func TestMatMul_OfIntegersIsTheSumOfProducts(t *testing.T) {
	g := tensor.NewGenerator(1)
	for _, k := range []int{1, 3, 4, 5, 63, 64, 65, 67, 130} {
		for _, n := range []int{1, 2, 7} {
			a, b := tensor.RandInt(g, -1<<40, 1<<40, 3, k), tensor.RandInt(g, -1<<40, 1<<40, k, n)
			want := tensor.Sum(tensor.Mul(a.Unsqueeze(2), b.Unsqueeze(0)), 1)
			for name, got := range map[string]*tensor.Tensor{
				"":               tensor.MatMul(a, b),
				" turned first":  tensor.MatMul(a.T().Contiguous().T(), b),
				" turned second": tensor.MatMul(a, b.T().Contiguous().T()),
			} {
				if !tensor.Equal(got, want) {
					t.Errorf("3×%d times %d×%d%s: %v, want %v", k, k, n, name, got, want)
				}
			}
		}
	}
}

// Products of BFloat16, which some processors compute as they are, are those of Float32, rounded.
func TestMatMul_OfShortFloats(t *testing.T) {
	g := tensor.NewGenerator(3)
	for _, dt := range []tensor.DType{tensor.BFloat16, tensor.Float16} {
		a, b := tensor.RandN(dt, g, 3, 40, 33), tensor.RandN(dt, g, 33, 20)
		for name, in := range map[string][2]*tensor.Tensor{
			"rows":            {a, b},
			"a is turned":     {a.Transpose(1, 2).Contiguous().Transpose(1, 2), b},
			"b is turned":     {a, b.T().Contiguous().T()},
			"a part":          {a.Narrow(1, 3, 30), b.Narrow(1, 1, 17)},
			"every other row": {a.Slice(1, 0, 40, 2), b},
			"of one":          {a.Select(0, 1).Narrow(0, 0, 1), b},
			"batches":         {a, tensor.RandN(dt, g, 3, 33, 20)},
			"with a wide one": {a, b.To(tensor.Float32)},
		} {
			got := tensor.MatMul(in[0], in[1]).To(tensor.Float64)
			want := tensor.MatMul(in[0].To(tensor.Float64), in[1].To(tensor.Float64))
			if off := tensor.Amax(tensor.Abs(tensor.Sub(got, want))).Item(); !(off < 0.1) { // sums of 33 reach 20
				t.Errorf("%v, %s: off by %v", dt, name, off)
			}
		}
	}
}

func TestMatMul_OfATurnedMatrixAndAVector(t *testing.T) {
	g := tensor.NewGenerator(1)
	for _, m := range []int{1, 2, 5, 70} {
		for _, k := range []int{1, 3, 65} {
			x := tensor.RandInt(g, -9, 9, k, m).To(tensor.Float32)
			for name, v := range map[string]*tensor.Tensor{
				"vector":         tensor.RandInt(g, -9, 9, k).To(tensor.Float32),
				"column":         tensor.RandInt(g, -9, 9, k, 1).To(tensor.Float32),
				"strided column": tensor.RandInt(g, -9, 9, k, 3).To(tensor.Float32).Narrow(1, 1, 1),
			} {
				got, want := tensor.MatMul(x.T(), v), tensor.MatMul(x.T().Contiguous(), v)
				if !tensor.Equal(got, want) {
					t.Errorf("%d×%d times a %s: %v, want %v", m, k, name, got, want)
				}
			}
		}
	}
}

func TestScatter_OfEachDTypeIsThatOfItsElements(t *testing.T) {
	g := tensor.NewGenerator(1)
	for _, dt := range allDTypes {
		for _, n := range []int{3, 8, 64, 65, 600} {
			places := tensor.RandPerm(g, n)
			src := tensor.RandInt(g, 0, 2, n, n%5+1).To(dt)
			wide := places.Unsqueeze(1).Expand(n, n%5+1)
			for dim, views := range [][3]*tensor.Tensor{{src, wide, src}, {src.T(), wide.T(), src.T()}} {
				x, idx := views[0], views[1]
				begin := tensor.Ones(dt, x.Shape()...)
				added, set := begin.Clone().ScatterAddInPlace(dim, idx, x), begin.Clone().ScatterInPlace(dim, idx, x)
				rows := begin.Clone().IndexAddInPlace(dim, places, x)
				back := func(y *tensor.Tensor) *tensor.Tensor { return tensor.IndexSelect(y, dim, places) }
				if sum := tensor.Add(begin, x); !tensor.Equal(back(added), sum) || !tensor.Equal(back(rows), sum) ||
					!tensor.Equal(back(set), x) {
					t.Errorf("%v, %d places along dimension %d", dt, n, dim)
				}
			}
		}
	}
}

func TestIndex_WrapsAndRefuses(t *testing.T) {
	x := tensor.Arange(tensor.Float32, 0, 60, 1).View(3, 4, 5)
	numbers := func(v ...int64) *tensor.Tensor { return tensor.FromSlice(v, len(v)) }
	got := tensor.Index(x, numbers(-3, 2, -1), numbers(3, -4, -1))
	for i, at := range [][]int{{0, 3}, {2, 0}, {2, 3}} {
		if want := x.Select(0, at[0]).Select(0, at[1]); !tensor.Equal(got.Select(0, i), want) {
			t.Errorf("row %d is %v, want %v", i, got.Select(0, i), want)
		}
	}
	grid := tensor.Index(x, numbers(-1, 0).Unsqueeze(1), numbers(1, -1, 0))
	want := tensor.IndexSelect(tensor.IndexSelect(x, 0, numbers(2, 0)), 1, numbers(1, 3, 0))
	if !tensor.Equal(grid, want) {
		t.Errorf("the grid is %v, want %v", grid, want)
	}
	for _, bad := range [][2]int64{{3, 0}, {-4, 0}, {0, 4}, {0, -5}, {1 << 62, 0}, {-1 << 63, 0}} {
		pick := func() ts { return ts{tensor.Index(x, numbers(0, bad[0]), numbers(0, bad[1]))} }
		if _, refused := attempt(pick); refused == "" {
			t.Errorf("places %v are not refused", bad)
		}
	}
}

func TestSum_OfTurnedDimensionsIsThatOfACopy(t *testing.T) {
	g := tensor.NewGenerator(1)
	x := tensor.RandInt(g, -9, 9, 5, 3, 66, 2).To(tensor.Float32)
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 0, 1}, {2, 3, 1, 0}, {3, 2, 1, 0}, {1, 0, 3, 2}} {
		turned := x.Permute(order...)
		for _, dims := range [][]int{{0}, {1}, {2}, {3}, {0, 3}, {1, 2}, {2, 3}, {0, 1, 3}, {0, 1, 2, 3}} {
			for name, f := range map[string]func(*tensor.Tensor, ...int) *tensor.Tensor{
				"Sum": tensor.Sum, "Amax": tensor.Amax, "Amin": tensor.Amin, "Prod": tensor.Prod,
			} {
				got, want := f(turned, dims...), f(turned.Contiguous(), dims...)
				if !tensor.AllClose(got, want, 0, 0) {
					t.Errorf("%s of %v in the order %v: %v, want %v", name, dims, order, got, want)
				}
			}
		}
	}
}

func TestArangeAndLinspace_OfAllLengths(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.Int64, tensor.Float16, tensor.Float32, tensor.Float64} {
		for _, n := range []int{0, 1, 2, 511, 512, 513, 1023, 1024, 1025, 1537} {
			t.Run(fmt.Sprint(dt, n), func(t *testing.T) {
				line, steps := tensor.Linspace(dt, 3, 90, n), tensor.Arange(dt, 3, 3+float64(n)/32, 1./32)
				want := tensor.New(tensor.Float64, n)
				for i := range n {
					step := 87 / float64(max(1, n-1))
					v := 3 + float64(step*float64(i))
					if n > 1 && i >= n/2 {
						v = 90 - float64(step*float64(n-1-i))
					}
					tensor.SetAt(want, v, i)
				}
				if !tensor.Equal(line, want.To(dt)) {
					t.Errorf("Linspace: %v", line)
				}
				for i := range n {
					v := 3 + float64(i)/32
					if dt == tensor.Uint8 || dt == tensor.Int64 { // the step is rounded to 0, as in PyTorch
						v = 3
					}
					tensor.SetAt(want, v, i)
				}
				if !tensor.Equal(steps, want.To(dt)) {
					t.Errorf("Arange: %v", steps)
				}
			})
		}
	}
}
