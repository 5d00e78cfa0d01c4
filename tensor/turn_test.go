package tensor_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"pgregory.net/rapid"
)

// oddFloats are numbers whose bits a copy or a sum must not change on its way.
var oddFloats = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.Copysign(0, -1)), 1e-40}

// drawWide is a tensor of two or three dimensions, permuted and narrowed, large enough for the ways
// that only large ones take.
func drawWide(t *rapid.T, dt tensor.DType) *tensor.Tensor {
	shape := []int{rapid.IntRange(1, 2).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "h"),
		rapid.IntRange(1, 150).Draw(t, "w")}
	x := tensor.RandN(tensor.Float32, tensor.NewGenerator(rapid.Uint64().Draw(t, "seed")), shape...)
	for i, v := range oddFloats {
		tensor.Data[float32](x)[i*7919%x.Numel()] = v
	}
	y := x.To(dt).Permute(rapid.Permutation([]int{0, 1, 2}).Draw(t, "order")...)
	for d, n := range y.Shape() {
		from := rapid.IntRange(0, min(3, n-1)).Draw(t, "from")
		y = y.Narrow(d, from, n-from)
	}
	return y
}

// each calls f with all indices of a shape of three dimensions.
func each(shape []int, f func(at ...int)) {
	for i := range shape[0] {
		for j := range shape[1] {
			for k := range shape[2] {
				f(i, j, k)
			}
		}
	}
}

// element returns an element of any dtype.
func element(t *tensor.Tensor, at ...int) float64 {
	for _, i := range at {
		t = t.Select(0, i)
	}
	return t.Item()
}

// alike reports whether two numbers are equal, or both NaN; zeros have one sign.
func alike(a, b float64) bool {
	return a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b)
}

func TestContiguous_OfAnyOrderAndSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Float64, tensor.Complex64,
			tensor.Complex128}
		dt := rapid.SampledFrom(all).Draw(t, "dtype")
		x := drawWide(t, dt)
		y := x.Clone()
		if !y.IsContiguous() {
			t.Fatal("a clone is not contiguous")
		}
		each(x.Shape(), func(at ...int) {
			if a, b := element(x, at...), element(y, at...); !alike(a, b) {
				t.Fatalf("at %v of %v, strides %v: %v, want %v", at, x.Shape(), x.Strides(), b, a)
			}
		})
	})
}

func TestSlice_OfStepsOfTwo(t *testing.T) {
	g := tensor.NewGenerator(1)
	for _, dt := range []tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Float64, tensor.Complex64} {
		for _, n := range []int{1, 2, 15, 16, 17, 31, 33, 64, 65, 129, 1000, 2100} {
			x := tensor.RandInt(g, 0, 100, 3, n).To(dt)
			for from := range min(2, n) {
				half := x.Slice(1, from, n, 2)
				copied, sum := half.Contiguous(), tensor.Add(half, half)
				for i := range 3 {
					for j := range half.Dim(1) {
						want := element(x, i, from+2*j)
						if got := element(copied, i, j); got != want {
							t.Fatalf("%v of %d from %d at (%d, %d): %v, want %v", dt, n, from, i, j, got, want)
						}
						if got := element(sum, i, j); got != 2*want {
							t.Fatalf("a sum of %v of %d from %d at (%d, %d): %v, want %v", dt, n, from, i, j,
								got, 2*want)
						}
					}
				}
			}
		}
	}
}

// Floats of two bytes are computed as float32 and rounded once, by whatever way.
func TestShortFloats_AreRoundedOnce(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		for _, n := range []int{1, 7, 15, 16, 17, 100, 1000, 1 << 16} {
			halves, brains := make([]tensor.F16, 2*n), make([]tensor.BF16, 2*n)
			for i := range halves {
				halves[i], brains[i] = tensor.F16(i*40503), tensor.BF16(i*40503)
			}
			both := tensor.FromSlice(halves, 2, n)
			if dt == tensor.BFloat16 {
				both = tensor.FromSlice(brains, 2, n)
			}
			x, y := both.Select(0, 0), both.Select(0, 1)
			wideX, wideY := x.To(tensor.Float32), y.To(tensor.Float32)
			for name, c := range map[string][2]*tensor.Tensor{
				"Add":      {tensor.Add(x, y), tensor.Add(wideX, wideY)},
				"Sub":      {tensor.Sub(x, y), tensor.Sub(wideX, wideY)},
				"Mul":      {tensor.Mul(x, y), tensor.Mul(wideX, wideY)},
				"Div":      {tensor.Div(x, y), tensor.Div(wideX, wideY)},
				"ReLU":     {tensor.ReLU(x), tensor.ReLU(wideX)},
				"into one": {x.Clone().MulInPlace(y), tensor.Mul(wideX, wideY)},
				"a number": {tensor.Add(x, y.Number(3)), tensor.Add(wideX, wideX.Number(3))},
			} {
				got, want := c[0].To(tensor.Float32), c[1].To(dt).To(tensor.Float32)
				if c[0].DType() != dt {
					t.Fatalf("%s of %v makes %v", name, dt, c[0].DType())
				}
				a, b := tensor.Data[float32](got), tensor.Data[float32](want)
				for i := range a {
					if a[i] != b[i] && (a[i] == a[i] || b[i] == b[i]) {
						t.Fatalf("%s of %v and %v in %v: %v, want %v", name, element(x, i), element(y, i), dt,
							a[i], b[i])
					}
				}
			}
		}
	}
}

func TestFlip_OfAnyOrderAndSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dt := rapid.SampledFrom([]tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Float64,
			tensor.Complex128}).Draw(t, "dtype")
		x := drawWide(t, dt)
		var dims []int
		for d := range 3 {
			if rapid.Bool().Draw(t, "turned") {
				dims = append(dims, d)
			}
		}
		y := tensor.Flip(x, dims...)
		if !slices.Equal(y.Shape(), x.Shape()) || !y.IsContiguous() {
			t.Fatalf("shape %v of %v", y.Shape(), x.Shape())
		}
		each(x.Shape(), func(at ...int) {
			from := slices.Clone(at)
			for _, d := range dims {
				from[d] = x.Shape()[d] - 1 - at[d]
			}
			if got, want := element(y, at...), element(x, from...); !alike(got, want) {
				t.Fatalf("%v at %v: %v, want %v", dims, at, got, want)
			}
		})
	})
}

func TestAddAndMul_OfOperandsOfAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawWide(t, tensor.Float32)
		shape := append([]int{}, x.Shape()...)
		for d := range shape { // what is broadcast
			if rapid.Bool().Draw(t, "one") {
				shape[d] = 1
			}
		}
		y := tensor.RandN(tensor.Float32, tensor.NewGenerator(2), shape[2], shape[1], shape[0]).Permute(2, 1, 0)
		for name, op := range map[string]struct {
			of   func(a, b *tensor.Tensor) *tensor.Tensor
			want func(a, b float32) float32
		}{
			"Add": {tensor.Add, func(a, b float32) float32 { return a + b }},
			"Mul": {tensor.Mul, func(a, b float32) float32 { return a * b }},
			"Sub": {tensor.Sub, func(a, b float32) float32 { return a - b }},
		} {
			xy, yx := op.of(x, y), op.of(y, x)
			each(x.Shape(), func(at ...int) {
				var k [3]int
				for d := range k {
					k[d] = min(at[d], shape[d]-1)
				}
				a, b := float32(element(x, at...)), float32(element(y, k[:]...))
				for _, c := range []struct{ got, want float64 }{
					{element(xy, at...), float64(op.want(a, b))},
					{element(yx, at...), float64(op.want(b, a))},
				} {
					if !alike(c.got, c.want) {
						t.Fatalf("%s at %v of %v and %v: %v, want %v", name, at, x.Shape(), shape, c.got, c.want)
					}
				}
			})
		}
	})
}

func TestIndexSelectAndGather_OfAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64}
		x := drawWide(t, rapid.SampledFrom(all).Draw(t, "dtype"))
		dim, n := rapid.IntRange(0, 2).Draw(t, "dim"), rapid.IntRange(1, 300).Draw(t, "n")
		size := x.Dim(dim)
		picks := make([]int64, n)
		for i := range picks {
			picks[i] = int64(rapid.IntRange(0, size-1).Draw(t, "pick"))
		}
		got := tensor.IndexSelect(x, dim, tensor.FromSlice(picks, n))
		shape := append([]int{}, got.Shape()...)
		wide := make([]int, 3)
		for d := range wide {
			wide[d] = 1
		}
		wide[dim] = n
		gathered := tensor.Gather(x, dim, tensor.FromSlice(picks, wide...).Expand(shape...).Clone())
		each(shape, func(at ...int) {
			from := append([]int{}, at...)
			from[dim] = int(picks[at[dim]])
			want := element(x, from...)
			if a, b := element(got, at...), element(gathered, at...); !alike(a, want) || !alike(b, want) {
				t.Fatalf("at %v: %v and %v, want %v", at, a, b, want)
			}
		})
	})
}

// A number goes through two additions in single precision, and the sum is rounded to it.
func TestSum_IsOffByLessThanItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawWide(t, tensor.Float32)
		for dim := range 3 {
			shape := append([]int{}, x.Shape()...)
			got := tensor.Keep(tensor.Sum, x, dim)
			n := shape[dim]
			shape[dim] = 1
			each(shape, func(at ...int) {
				from, sum, size := append([]int{}, at...), 0., 0.
				for i := range n {
					from[dim] = i
					sum += element(x, from...)
					size += math.Abs(element(x, from...))
				}
				g := element(got, at...)
				off := 0x1.001p-24*math.Abs(sum) + 0x1.001p-23*size
				if g != sum && !(g != g && sum != sum) && !(math.Abs(g-sum) <= off) {
					t.Fatalf("along %d at %v: %v, want %v", dim, at, g, sum)
				}
			})
		}
	})
}

func TestCat_OfPiecesAndOfViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim, x := rapid.IntRange(0, 2).Draw(t, "dim"), drawWide(t, tensor.Float32)
		y := tensor.RandN(tensor.Float64, nil, x.Shape()...).To(rapid.SampledFrom([]tensor.DType{
			tensor.Float32, tensor.Float64}).Draw(t, "dtype"))
		if rapid.Bool().Draw(t, "pieces") {
			x = x.Contiguous()
		}
		got, n := tensor.Cat(dim, x, tensor.New(tensor.Float32, 0), y), x.Dim(dim)
		each(got.Shape(), func(at ...int) {
			from, want := x, append([]int{}, at...)
			if at[dim] >= n {
				from, want[dim] = y, at[dim]-n
			}
			if a, b := element(got, at...), element(from, want...); !alike(a, b) {
				t.Fatalf("along %d at %v: %v, want %v", dim, at, a, b)
			}
		})
	})
}
