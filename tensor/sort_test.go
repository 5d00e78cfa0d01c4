package tensor_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shoal-mp/shoal/tensor"
)

// TestArgsort_IsStable compares with a sort that compares elements: rows on both sides of where
// digits are counted, many equal elements, both zeros, and what is not finite or at an end of the
// range.
func TestArgsort_IsStable(t *testing.T) {
	t.Run("uint8", func(t *testing.T) { checkArgsort(t, uint8(0), 1, math.MaxUint8) })
	t.Run("int8", func(t *testing.T) { checkArgsort(t, int8(0), -1, math.MinInt8, math.MaxInt8) })
	t.Run("int16", func(t *testing.T) { checkArgsort(t, int16(0), -1, math.MinInt16, math.MaxInt16) })
	t.Run("int32", func(t *testing.T) { checkArgsort(t, int32(0), -1, math.MinInt32, math.MaxInt32) })
	t.Run("int64", func(t *testing.T) { checkArgsort(t, int64(0), -1, math.MinInt64, math.MaxInt64) })
	t.Run("float32", func(t *testing.T) { checkFloatArgsort[float32](t, math.SmallestNonzeroFloat32) })
	t.Run("float64", func(t *testing.T) { checkFloatArgsort[float64](t, math.SmallestNonzeroFloat64) })
}

func checkFloatArgsort[F float32 | float64](t *testing.T, least F) {
	zero := F(0)
	checkArgsort(t, 0, -zero, F(math.Copysign(0, -1)), least, -least, 1.5, -1.5, F(math.Inf(1)),
		F(math.Inf(-1)), F(math.NaN()), F(-math.NaN()))
}

func checkArgsort[T interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64
}](t *testing.T, special ...T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 63, 64, 65, 300}).Draw(t, "n")
		g := tensor.NewGenerator(rapid.Uint64().Draw(t, "seed"))
		noise := tensor.Data[int64](tensor.RandInt(g, math.MinInt32, math.MaxInt32, n))
		row := make([]T, n)
		for i, v := range noise {
			if row[i] = T(v); v&1 == 0 {
				row[i] = special[int(uint32(v)>>1)%len(special)]
			}
		}
		descending := rapid.Bool().Draw(t, "descending")
		want := make([]int64, n)
		for i := range want {
			want[i] = int64(i)
		}
		slices.SortStableFunc(want, func(i, j int64) int {
			if descending {
				i, j = j, i
			}
			x, y := row[i], row[j]
			if x != x || y != y { // NaN is the greatest
				return cmp.Compare(y, x)
			}
			return cmp.Compare(x, y)
		})
		x := tensor.FromSlice(slices.Concat(row, row), 2, n)
		got := tensor.Argsort(x, 1, descending)
		for r := range 2 {
			if s := tensor.Data[int64](got)[r*n:][:n]; !slices.Equal(s, want) {
				t.Fatalf("row %d of %v: %v, want %v", r, row, s, want)
			}
		}
	})
}
