package tensor_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"pgregory.net/rapid"
)

// Rows of integers are begun by instructions and ended element by element, and their extremes are
// found piece by piece: so lengths are around those of registers and pieces.
func TestIntegers_OfAllLengths(t *testing.T) {
	t.Run("uint8", integersOfAllLengths[uint8])
	t.Run("int8", integersOfAllLengths[int8])
	t.Run("int16", integersOfAllLengths[int16])
	t.Run("int32", integersOfAllLengths[int32])
	t.Run("int64", integersOfAllLengths[int64])
}

func integersOfAllLengths[T interface {
	uint8 | int8 | int16 | int32 | int64
}](t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 95, 127, 128, 200, 255, 256, 257, 511, 512,
			513, 544, 575, 600, 768, 1000, 1025}).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		draw := func() []T {
			x := make([]T, n)
			for i := range x {
				seed = seed*6364136223846793005 + 1442695040888963407
				x[i] = T(seed >> 33)
				if seed>>62 == 0 {
					x[i] = T(seed >> 61) // small and often equal
				}
			}
			return x
		}
		x, y := draw(), draw()
		a, b := tensor.FromSlice(x, n), tensor.FromSlice(y, n)
		for name, c := range map[string]struct {
			got  *tensor.Tensor
			want func(x, y T) T
		}{
			"Add":     {tensor.Add(a, b), func(x, y T) T { return x + y }},
			"Sub":     {tensor.Sub(a, b), func(x, y T) T { return x - y }},
			"Mul":     {tensor.Mul(a, b), func(x, y T) T { return x * y }},
			"Maximum": {tensor.Maximum(a, b), func(x, y T) T { return max(x, y) }},
			"Minimum": {tensor.Minimum(a, b), func(x, y T) T { return min(x, y) }},
			"into a":  {a.Clone().MulInPlace(b), func(x, y T) T { return x * y }},
			"by one":  {tensor.Add(a, a.Number(3)), func(x, _ T) T { return x + 3 }},
		} {
			for i, got := range tensor.Data[T](c.got) {
				if want := c.want(x[i], y[i]); got != want {
					t.Fatalf("%s of %v and %v, at %d of %d: %v, want %v", name, x[i], y[i], i, n, got, want)
				}
			}
		}
		if got, want := tensor.At[T](tensor.Amax(a)), slices.Max(x); got != want {
			t.Fatalf("Amax of %d numbers: %v, want %v", n, got, want)
		}
		if got, want := tensor.At[T](tensor.Amin(a)), slices.Min(x); got != want {
			t.Fatalf("Amin of %d numbers: %v, want %v", n, got, want)
		}
	})
}

// Quotients are rounded down, and that of the least number wraps around.
func TestFloorDivide_OfIntegers(t *testing.T) {
	for _, x := range []int64{math.MinInt64, math.MinInt64 + 1, -7, -6, -1, 0, 1, 6, 7, math.MaxInt64} {
		for _, y := range []int64{math.MinInt64, -7, -3, -1, 1, 2, 7, math.MaxInt64} {
			want := new(big.Int).Div(big.NewInt(x), big.NewInt(y)) // leaves no negative rest
			if rest := x % y; rest != 0 && y < 0 {
				want.Sub(want, big.NewInt(1))
			}
			got := tensor.At[int64](tensor.FloorDivide(tensor.FromSlice([]int64{x}), tensor.FromSlice([]int64{y})))
			if x == math.MinInt64 && y == -1 {
				want.SetInt64(x)
			}
			if got != want.Int64() {
				t.Errorf("%d by %d: %d, want %v", x, y, got, want)
			}
		}
	}
}

// Products of small integers are those of floats, and others wrap around: the bits are those of
// sums of products in any case.
func TestMatMul_OfIntegersIsExact(t *testing.T) {
	const m, k, n = 17, 70, 33
	for _, most := range []int64{3, 1 << 20, 1<<23 + 7, 1 << 24, 1 << 40, math.MaxInt64} {
		for turned := range 4 {
			seed := uint64(most) + uint64(turned)
			draw := func(rows, cols int, turn bool) *tensor.Tensor {
				x := make([]int64, rows*cols)
				for i := range x {
					seed = seed*6364136223846793005 + 1442695040888963407
					x[i] = int64(seed>>1)%most - most/2
				}
				x[0], x[len(x)-1] = most, -most
				if turn {
					return tensor.FromSlice(x, cols, rows).T()
				}
				return tensor.FromSlice(x, rows, cols)
			}
			a, b := draw(m, k, turned&1 != 0), draw(k, n, turned&2 != 0)
			got := tensor.Data[int64](tensor.MatMul(a, b))
			x, y := tensor.Data[int64](a.Contiguous()), tensor.Data[int64](b.Contiguous())
			for i := range m {
				for j := range n {
					var want int64
					for l := range k {
						want += x[i*k+l] * y[l*n+j]
					}
					if got[i*n+j] != want {
						t.Fatalf("up to %d, turned %d, at (%d, %d): %d, want %d", most, turned, i, j, got[i*n+j], want)
					}
				}
			}
		}
	}
}

func TestArange_OfIntegersCountsThem(t *testing.T) {
	for _, n := range []int{0, 1, 511, 1023, 1024, 1025, 5000} {
		for _, step := range []int{1, -3, 1 << 30} {
			x := tensor.Arange(tensor.Int64, -5, float64(-5+n*step), float64(step))
			for i, v := range tensor.Data[int64](x) {
				if v != int64(-5+i*step) {
					t.Fatalf("%d by %d at %d: %d", n, step, i, v)
				}
			}
			if x.Numel() != n {
				t.Fatalf("%d numbers, want %d", x.Numel(), n)
			}
		}
	}
}

// One truth among many decides, wherever it is.
func TestAllAndAny_SeeEachElement(t *testing.T) {
	for _, n := range []int{1, 31, 32, 33, 64, 65, 300, 544, 600} {
		for at := range n {
			odd := func(v float64, rest float64) *tensor.Tensor {
				x := tensor.Full(tensor.Bool, rest, n)
				x.Narrow(0, at, 1).Fill(v)
				return x
			}
			some, most := odd(1, 0), odd(0, 1)
			for name, ok := range map[string]bool{
				"Any": tensor.At[bool](tensor.Any(some)), "not All": !tensor.At[bool](tensor.All(most)),
				"And": tensor.Equal(tensor.And(some, most), tensor.New(tensor.Bool, n)),
				"Or":  tensor.Equal(tensor.Or(some, most), tensor.Ones(tensor.Bool, n)),
				"Xor": tensor.Equal(tensor.Xor(some, most), tensor.Ones(tensor.Bool, n)),
				"Not": tensor.Equal(tensor.Not(some), most), "unequal": !tensor.Equal(some, most),
			} {
				if !ok {
					t.Fatalf("%s is wrong for element %d of %d", name, at, n)
				}
			}
		}
	}
}

func TestAllClose_OfEachElement(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64, tensor.Int64, tensor.Complex64} {
		t.Run(fmt.Sprint(dt), func(t *testing.T) {
			x := tensor.Arange(tensor.Float32, 1, 1001, 1).To(dt)
			for _, at := range []int{0, 511, 512, 999} {
				y := x.Clone()
				y.Narrow(0, at, 1).AddScalarInPlace(1)
				if tensor.AllClose(x, y, 1e-5, 0.5) || !tensor.AllClose(x, y, 1e-5, 1) || !tensor.AllClose(x, y, 1, 0) {
					t.Errorf("element %d", at)
				}
			}
		})
	}
}
