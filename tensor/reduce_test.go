package tensor_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"pgregory.net/rapid"
)

// drawReduced is drawWide, or a tensor with another large dimension, and dimensions of it.
func drawReduced(t *rapid.T, dt tensor.DType) (x *tensor.Tensor, dims []int) {
	if x = drawWide(t, dt); rapid.Bool().Draw(t, "tall") {
		x = tensor.RandN(tensor.Float32, tensor.NewGenerator(rapid.Uint64().Draw(t, "seed")),
			rapid.IntRange(1, 70).Draw(t, "n"), rapid.IntRange(1, 3).Draw(t, "h"),
			rapid.IntRange(1, 130).Draw(t, "w")).To(dt)
	}
	if rapid.Bool().Draw(t, "finite") {
		x = tensor.Where(tensor.IsFinite(x), x, x.Number(3))
	}
	for d := range 3 {
		if rapid.Bool().Draw(t, "reduced") {
			dims = append(dims, d)
		}
	}
	return x, dims
}

// A place is an element of a reduction: its index, and the elements that it is made of.
type place struct {
	at  []int
	row []float64
}

// reduced returns the elements of a reduction along dims, by default all.
func reduced(x *tensor.Tensor, dims []int) map[string]place {
	all := map[string]place{}
	each(x.Shape(), func(at ...int) {
		var stay []int
		for d, i := range at {
			if len(dims) > 0 && !slices.Contains(dims, d) {
				stay = append(stay, i)
			}
		}
		key := fmt.Sprint(stay)
		all[key] = place{stay, append(all[key].row, element(x, at...))}
	})
	return all
}

func TestReductions_OfAnyDimensionsAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dt := rapid.SampledFrom([]tensor.DType{tensor.Float32, tensor.Float64}).Draw(t, "dtype")
		x, dims := drawReduced(t, dt)
		unit := 0x1p-53
		if dt == tensor.Float32 {
			unit = 0x1p-24
		}
		for what, want := range map[string]func(row []float64) (v, tolerance float64){
			"Sum": func(row []float64) (float64, float64) {
				sum, magnitude := 0.0, 0.0
				for _, v := range row {
					sum, magnitude = sum+v, magnitude+math.Abs(v)
				}
				return sum, 4 * unit * magnitude
			},
			"Mean": func(row []float64) (float64, float64) {
				sum, magnitude := 0.0, 0.0
				for _, v := range row {
					sum, magnitude = sum+v, magnitude+math.Abs(v)
				}
				return sum / float64(len(row)), 5 * unit * magnitude / float64(len(row))
			},
			"Amax": func(row []float64) (float64, float64) { return greatest(row), 0 },
			"Amin": func(row []float64) (float64, float64) {
				for i := range row {
					row[i] = -row[i]
				}
				return -greatest(row), 0
			},
		} {
			f := map[string]func(*tensor.Tensor, ...int) *tensor.Tensor{
				"Sum": tensor.Sum, "Mean": tensor.Mean, "Amax": tensor.Amax, "Amin": tensor.Amin}[what]
			got := f(x, dims...)
			if got.DType() != dt {
				t.Fatalf("%s is of %v", what, got.DType())
			}
			for _, p := range reduced(x, dims) {
				v := element(got, p.at...)
				w, tolerance := want(slices.Clone(p.row))
				if dt == tensor.Float64 {
					tolerance *= 200
				}
				if !(v == w || v != v && w != w || math.Abs(v-w) <= tolerance) {
					t.Fatalf("%s along %v of %v, strides %v, at %v is %v, want %v", what, dims, x.Shape(), x.Strides(),
						p.at, v, w)
				}
			}
			got.Close()
		}
	})
}

// greatest is NaN if one is.
func greatest(row []float64) float64 {
	best := row[0]
	for _, v := range row {
		best = max(best, v)
	}
	return best
}

// Rows and columns of numbers that are too large together for float32 have sums in float64.
func TestSum_OfNumbersThatAreTooLargeTogether(t *testing.T) {
	const large = math.MaxFloat32
	for _, n := range []int{2, 8, 64, 100, 1000} {
		row := tensor.Full(tensor.Float32, large, 4*n)
		row.Narrow(0, 2*n, 2*n).Fill(-large)
		if got := row.Sum(); got != 0 {
			t.Errorf("%d: the sum is %v", n, got)
		}
		for dim, x := range map[int]*tensor.Tensor{0: row.View(-1, 1).Expand(4*n, 100).Clone(), 1: row.View(1, -1)} {
			if got := tensor.Sum(x, dim); tensor.Amax(got).Item() != 0 || tensor.Amin(got).Item() != 0 {
				t.Errorf("%d: the sums along dimension %d are %v", n, dim, got)
			}
		}
		infinite := row.View(-1, 1).Expand(4*n, 100).Clone()
		tensor.SetAt(infinite, float32(math.Inf(1)), 3, 5)
		got := tensor.Sum(infinite, 0)
		if !math.IsInf(got.Select(0, 5).Item(), 1) || got.Select(0, 4).Item() != 0 || got.Select(0, 99).Item() != 0 {
			t.Errorf("%d: with an infinity in column 5 the sums are %v", n, got)
		}
	}
}

// Elements of two bytes are widened piece by piece, so lengths are around those of pieces.
func TestReductions_OfLongRowsOfShortElements(t *testing.T) {
	g := tensor.NewGenerator(5)
	for _, n := range []int{0, 1, 7, 600, 2047, 2048, 2049, 4096, 5000} {
		for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
			x := tensor.Rand(tensor.Float32, g, 3, n).AddScalarInPlace(0.5).To(dt)
			wide := x.To(tensor.Float64)
			for name, f := range map[string]func(t *tensor.Tensor, dims ...int) *tensor.Tensor{
				"Sum": tensor.Sum, "Mean": tensor.Mean, "Prod": tensor.Prod, "Amax": tensor.Amax, "Amin": tensor.Amin,
				"Var": tensor.Var, "All": tensor.All, "Any": tensor.Any} {
				if n == 0 && (name == "Amax" || name == "Amin") {
					continue
				}
				got, want := f(x, 1), f(wide, 1)
				if got.DType() != tensor.Bool {
					want = want.To(dt)
				}
				for i := range 3 {
					if a, b := element(got, i), element(want, i); !alike(a, b) && math.Abs(a-b) > math.Abs(b)/100 {
						t.Errorf("%s of %d numbers of %v: %v, want %v", name, n, dt, a, b)
					}
				}
			}
		}
	}
}

func TestCompare_OfAnyOrderAndDType(t *testing.T) {
	all := []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.Float16, tensor.Float32, tensor.Float64}
	rapid.Check(t, func(t *rapid.T) {
		dt := rapid.SampledFrom(all).Draw(t, "dtype")
		x, y := drawWide(t, dt), tensor.Scalar(dt, 1)
		switch rapid.IntRange(0, 2).Draw(t, "other") {
		case 0:
			y = tensor.Flip(x.Clone().View(-1), 0).View(x.Shape()...)
		case 1:
			y = x.Narrow(2, 0, 1)
		}
		other := y.Expand(x.Shape()...)
		for name, r := range map[string]struct {
			do func(a, b *tensor.Tensor) *tensor.Tensor
			is func(a, b float64) bool
		}{
			"Eq": {tensor.Eq, func(a, b float64) bool { return a == b }},
			"Ne": {tensor.Ne, func(a, b float64) bool { return a != b }},
			"Lt": {tensor.Lt, func(a, b float64) bool { return a < b }},
			"Le": {tensor.Le, func(a, b float64) bool { return a <= b }},
			"Gt": {tensor.Gt, func(a, b float64) bool { return a > b }},
			"Ge": {tensor.Ge, func(a, b float64) bool { return a >= b }},
		} {
			got := r.do(x, y)
			each(x.Shape(), func(at ...int) {
				a, b := element(x, at...), element(other, at...)
				if v := tensor.At[bool](got, at...); v != r.is(a, b) {
					t.Fatalf("%s(%v, %v) of %v at %v of %v is %v", name, a, b, dt, at, x.Shape(), v)
				}
			})
		}
	})
}

func TestNonzeroAndMaskedSelect_FindAllThatIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawWide(t, tensor.Float32)
		level := rapid.SampledFrom([]float64{-1e9, -0.5, 0, 1.5, 1e9}).Draw(t, "level") // all, many, half, few, none
		mask := tensor.Gt(x, x.Number(level))
		var places []int64
		var values []float64
		each(x.Shape(), func(at ...int) {
			if tensor.At[bool](mask, at...) {
				places = append(places, int64(at[0]), int64(at[1]), int64(at[2]))
				values = append(values, element(x, at...))
			}
		})
		found, chosen := tensor.Nonzero(mask), tensor.MaskedSelect(x, mask)
		if found.Dim(0) != len(values) || found.Dim(1) != 3 || chosen.Numel() != len(values) {
			t.Fatalf("%v places and %v values of %d", found.Shape(), chosen.Shape(), len(values))
		}
		if !slices.Equal(tensor.Data[int64](found), places) {
			t.Fatalf("places %v, want %v", tensor.Data[int64](found), places)
		}
		for i, v := range tensor.Data[float32](chosen) {
			if !alike(float64(v), values[i]) {
				t.Fatalf("value %d is %v, want %v", i, v, values[i])
			}
		}
	})
	for _, x := range []*tensor.Tensor{tensor.Scalar(tensor.Float32, 0), tensor.Scalar(tensor.Float32, 2),
		tensor.New(tensor.Bool, 0), tensor.New(tensor.Bool, 3, 0, 2), tensor.Full(tensor.Uint8, 200, 2, 1)} {
		want := []int{0, x.Dims()}
		if x.Numel() > 0 && tensor.Amax(x).Item() != 0 {
			want[0] = x.Numel()
		}
		if got := tensor.Nonzero(x); !slices.Equal(got.Shape(), want) {
			t.Errorf("Nonzero of %v has shape %v, want %v", x, got.Shape(), want)
		}
	}
}

// The place of an extreme is the first one of equals, and that of the first NaN.
func TestArgmaxAndArgmin_AreFirst(t *testing.T) {
	few := []float64{0, math.Copysign(0, -1), 1, -1, 2, 3, math.Inf(1), math.Inf(-1), math.NaN()}
	rapid.Check(t, func(t *rapid.T) {
		n, among := rapid.IntRange(1, 150).Draw(t, "n"), rapid.IntRange(1, len(few)).Draw(t, "among")
		numbers := rapid.SliceOfN(rapid.SampledFrom(few[:among]), n, n).Draw(t, "numbers")
		most, least := 0, 0
		for i, v := range numbers {
			if w := numbers[most]; v > w || v != v && w == w {
				most = i
			}
			if w := numbers[least]; v < w || v != v && w == w {
				least = i
			}
		}
		for _, dt := range []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64} {
			row := tensor.FromSlice(numbers, n).To(dt)
			columns := row.View(n, 1).Expand(n, 70).Clone()
			for what, got := range map[string][2]*tensor.Tensor{
				"a row":    {tensor.Argmax(row, 0), tensor.Argmin(row, 0)},
				"a column": {tensor.Argmax(columns, 0).Select(0, 69), tensor.Argmin(columns, 0).Select(0, 69)},
			} {
				if int(got[0].Item()) != most || int(got[1].Item()) != least {
					t.Fatalf("%v of %v: the largest of %s is at %v, the smallest at %v, want %d and %d", dt,
						numbers, what,
						got[0].Item(), got[1].Item(), most, least)
				}
			}
		}
	})
}
