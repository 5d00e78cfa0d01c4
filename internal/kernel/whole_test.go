package kernel_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

type whole interface {
	uint8 | int8 | int16 | int32 | int64
}

// combinations are what Combine makes of two integers.
func combinations[T whole]() map[kernel.Whole]func(x, y T) T {
	return map[kernel.Whole]func(x, y T) T{
		kernel.Plus:    func(x, y T) T { return x + y },
		kernel.Minus:   func(x, y T) T { return x - y },
		kernel.Times:   func(x, y T) T { return x * y },
		kernel.Larger:  func(x, y T) T { return max(x, y) },
		kernel.Smaller: func(x, y T) T { return min(x, y) },
	}
}

// checkCombine combines integers, also in the place of one of them.
func checkCombine[T whole](least, most int64) func(t *testing.T) {
	return rapid.MakeCheck(func(t *rapid.T) {
		onSomeMachine(t)
		n, skip := rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(0, 3).Draw(t, "alignment")
		draw := func(name string) []T {
			x := make([]T, n+skip)
			for i := range x {
				x[i] = T(rapid.Int64Range(least, most).Draw(t, name))
			}
			return x[skip:]
		}
		x, y := draw("x"), draw("y")
		place := rapid.IntRange(0, 2).Draw(t, "place")
		for w, f := range combinations[T]() {
			a, b := append([]T(nil), x...), append([]T(nil), y...)
			z := [][]T{make([]T, n), a, b}[place]
			was := append([]T(nil), z...)
			done := kernel.Combine(w, a, b, z)
			if size := int(unsafe.Sizeof(T(0))); done > n || done != 0 && (n-done)*size >= 32 {
				t.Fatalf("%d of %d are done", done, n)
			}
			for i, got := range z {
				want := was[i]
				if i < done {
					want = f(x[i], y[i])
				}
				if got != want {
					t.Fatalf("operation %d of %v and %v, at %d of %d, is %v, want %v", w, x[i], y[i], i, n, got, want)
				}
			}
		}
	})
}

func TestCombine_IsTheOperationOnIntegers(t *testing.T) {
	t.Run("uint8", checkCombine[uint8](0, math.MaxUint8))
	t.Run("int8", checkCombine[int8](math.MinInt8, math.MaxInt8))
	t.Run("int16", checkCombine[int16](math.MinInt16, math.MaxInt16))
	t.Run("int32", checkCombine[int32](math.MinInt32, math.MaxInt32))
	t.Run("int64", checkCombine[int64](math.MinInt64, math.MaxInt64))
}

// Floats, and integers that there are no instructions for, are left to the caller.
func TestCombine_LeavesOtherNumbers(t *testing.T) {
	x, y := make([]uint64, 64), make([]float32, 64)
	if n := kernel.Combine(kernel.Plus, x, x, x) + kernel.Combine(kernel.Plus, y, y, y); n != 0 {
		t.Errorf("%d are done", n)
	}
}
