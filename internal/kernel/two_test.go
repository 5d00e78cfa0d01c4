package kernel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// Functions of two numbers are those of package math, of all kinds of numbers, also in place.
func TestFunctionsOfTwoNumbers(t *testing.T) {
	var numbers []float32
	for _, v := range []float64{0, 1, 2, 3, 0.5, 1e-3, 7.25, 10, 1e-45, 1e-38, 1e10, 16777215, 16777217, 3e38,
		math.Pi, 0.1, 88, math.Inf(1)} {
		numbers = append(numbers, float32(v), float32(-v))
	}
	numbers = append(numbers, float32(math.NaN()))
	for b := uint64(1); b < 1<<32; b += 1<<27 + 12345 {
		numbers = append(numbers, math.Float32frombits(uint32(b)))
	}
	var x, y []float32
	for _, a := range numbers {
		for _, b := range numbers {
			x, y = append(x, a), append(y, b)
		}
	}
	onEachLevel(t, func(t *testing.T) {
		for name, f := range map[string]struct {
			do    func(x, y, z []float32)
			exact func(x, y float64) float64
			units float64
		}{
			"Power":       {kernel.Power, math.Pow, 1},
			"Hypot":       {kernel.Hypot, math.Hypot, 1},
			"Atan2":       {kernel.Atan2, math.Atan2, 3},
			"Remainder":   {kernel.Remainder, kernel.RemainderOf, 0},
			"FloorDivide": {kernel.FloorDivide, kernel.FloorDivideOf, 0},
			"LogAddExp": {kernel.LogAddExp, func(x, y float64) float64 {
				if x == y {
					return x + math.Ln2
				}
				return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
			}, 0},
		} {
			z := make([]float32, len(x))
			f.do(x, y, z)
			for i, got := range z {
				want := float32(f.exact(float64(x[i]), float64(y[i])))
				off := f.units * unit[float32](float64(want))
				if name == "LogAddExp" { // a sum, whose parts are rounded
					off = 2 * unit[float32](math.Max(math.Abs(float64(max(x[i], y[i]))), 1))
				}
				if got != want && !(got != got && want != want) && !(math.Abs(float64(got)-float64(want)) <= off) ||
					want == 0 && f.units == 0 && off == 0 && math.Signbit(float64(got)) != math.Signbit(float64(want)) {
					t.Errorf("%s of %v and %v is %v, want %v", name, x[i], y[i], got, want)
					break
				}
			}
			first, second := append([]float32(nil), x...), append([]float32(nil), y...)
			f.do(first, y, first)
			f.do(x, second, second)
			for i := range z {
				want := math.Float32bits(z[i])
				if math.Float32bits(first[i]) != want || math.Float32bits(second[i]) != want {
					t.Fatalf("%s of %v and %v in place is %v and %v, want %v", name, x[i], y[i], first[i],
						second[i], z[i])
				}
			}
		}
	})
}

// TestRemainderOf_IsExact compares with math.Mod, for numbers of all sizes, and whole ones.
func TestRemainderOf_IsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	special := []float64{0, math.Copysign(0, -1), 1, -1, 3, 0.1, 1 << 52, 1 << 53, 1e308, 5e-324, -2.2e-308,
		math.Inf(1), math.Inf(-1), math.NaN()}
	number := func() float64 {
		switch r.IntN(4) {
		case 0:
			return special[r.IntN(len(special))]
		case 1:
			return float64(r.IntN(2001) - 1000)
		case 2:
			return math.Float64frombits(r.Uint64())
		}
		return r.NormFloat64() * math.Ldexp(1, r.IntN(120)-60)
	}
	for range 200_000 {
		x, y := number(), number()
		if r.IntN(3) == 0 { // next to a multiple
			x = y * float64(r.IntN(1000)-500)
			if r.IntN(2) == 0 {
				x = math.Nextafter(x, number())
			}
		}
		quotient := x / y
		if q := math.Floor(quotient); y != 0 && math.Abs(q) < 1<<50 && !math.IsInf(y, 0) {
			rest := new(big.Float).SetPrec(4000).Mul(big.NewFloat(q), big.NewFloat(y))
			rest.Sub(big.NewFloat(x), rest)
			if rest.Sign() != 0 && (rest.Sign() < 0) != (y < 0) {
				q--
			}
			if got := kernel.FloorDivideOf(x, y); got != q {
				t.Fatalf("%v by %v, rounded down, is %v, not %v", x, y, got, q)
			}
		}
		want := math.Mod(x, y)
		if want != 0 && (want < 0) != (y < 0) {
			want += y
		}
		got := kernel.RemainderOf(x, y)
		if math.Float64bits(got) != math.Float64bits(want) && !(got != got && want != want) {
			t.Fatalf("the remainder of %v and %v is %v, not %v", x, y, got, want)
		}
	}
}
