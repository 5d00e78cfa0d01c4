package kernel_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

type compared interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64
}

var relations = map[kernel.Comparison]string{
	kernel.Equal: "==", kernel.NotEqual: "!=", kernel.Less: "<", kernel.LessOrEqual: "<=",
}

func is[T compared](c kernel.Comparison, x, y T) bool {
	return map[kernel.Comparison]bool{
		kernel.Equal: x == y, kernel.NotEqual: x != y, kernel.Less: x < y, kernel.LessOrEqual: x <= y,
	}[c]
}

// checkCompare compares numbers of which each is among the few that are drawn from.
func checkCompare[T compared](few ...T) func(t *testing.T) {
	return rapid.MakeCheck(func(t *rapid.T) {
		onSomeMachine(t)
		n, skip := rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(0, 3).Draw(t, "alignment")
		draw := func(name string) []T {
			return rapid.SliceOfN(rapid.SampledFrom(few), n+skip, n+skip).Draw(t, name)[skip:]
		}
		x, y, z := draw("x"), draw("y"), make([]uint8, n+1)
		for c, sign := range relations {
			for i := range z {
				z[i] = 7
			}
			done := kernel.Compare(c, x, y, z[:n])
			if done > n || done != 0 && n-done >= 32 {
				t.Fatalf("%d of %d are done", done, n)
			}
			for i, got := range z {
				want := uint8(7)
				if i < done {
					want = 0
					if is(c, x[i], y[i]) {
						want = 1
					}
				}
				if got != want {
					t.Fatalf("%v %s %v at %d of %d is %d, want %d", x[i], sign, y[i], i, n, got, want)
				}
			}
		}
	})
}

func TestCompare_IsTrueWhereNumbersAre(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	t.Run("uint8", checkCompare[uint8](0, 1, 2, 127, 128, 129, 254, 255))
	t.Run("int8", checkCompare[int8](0, 1, -1, 127, -128, 126, -127))
	t.Run("int16", checkCompare[int16](0, 1, -1, 255, 256, math.MaxInt16, math.MinInt16))
	t.Run("int32", checkCompare[int32](0, 1, -1, 1<<16, math.MaxInt32, math.MinInt32))
	t.Run("int64", checkCompare[int64](0, 1, -1, 1<<32, 1<<32+1, -1<<32, math.MaxInt64, math.MinInt64))
	t.Run("float32", checkCompare(0, float32(math.Copysign(0, -1)), 1, -1, 1e-45, float32(inf), float32(-inf),
		float32(nan)))
	t.Run("float64", checkCompare(0, math.Copysign(0, -1), 1, -1, 5e-324, inf, -inf, nan))
}

// A kind of numbers that there are no instructions for is left to the caller.
func TestCompare_LeavesOtherNumbers(t *testing.T) {
	x := make([]uint64, 64)
	if n := kernel.Compare(kernel.Equal, x, x, make([]uint8, 64)); n != 0 {
		t.Errorf("%d are done", n)
	}
}
