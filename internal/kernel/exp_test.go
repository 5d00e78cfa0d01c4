package kernel_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// An exponential is a function that kernels compute, and what package math says it is.
type exponential[F kernel.Float] struct {
	name  string
	do    func(x, y []F)
	exact func(x float64) float64
	units float64 // in the last place that they may be apart
}

func exponentials[F kernel.Float]() []exponential[F] {
	units := 1.1
	if isDouble[F]() {
		units = 2 // one of them is math.Exp's
	}
	return []exponential[F]{
		{"Exp", kernel.Exp[F], math.Exp, units},
		{"Sigmoid", kernel.Sigmoid[F], func(x float64) float64 {
			e := math.Exp(-math.Abs(x))
			if x < 0 {
				return e / (1 + e)
			}
			return 1 / (1 + e)
		}, 3},
		{"Tanh", kernel.Tanh[F], math.Tanh, 3},
		{"Log", mapped[F](kernel.Log), exactLog, 1.1},
		{"Log1p", mapped[F](kernel.Log1p), math.Log1p, units + 0.5},
		{"Expm1", mapped[F](kernel.Expm1), math.Expm1, units + 0.5},
		{"Sin", mapped[F](kernel.Sin), math.Sin, units + 0.5},
		{"Cos", mapped[F](kernel.Cos), math.Cos, units + 0.5},
		{"Atan", mapped[F](kernel.Atan), math.Atan, 2.5},
		{"Erf", mapped[F](kernel.Erf), math.Erf, 3},
		{"Sign", mapped[F](kernel.Sign), signOf, 0},
		{"Neg", mapped[F](kernel.Neg), func(x float64) float64 { return -x }, 0},
		{"Abs", mapped[F](kernel.Abs), math.Abs, 0},
		{"Floor", mapped[F](kernel.Floor), math.Floor, 0},
		{"Ceil", mapped[F](kernel.Ceil), math.Ceil, 0},
		{"Round", mapped[F](kernel.Round), math.RoundToEven, 0},
		{"Trunc", mapped[F](kernel.Trunc), math.Trunc, 0},
		{"Sqrt", mapped[F](kernel.Sqrt), math.Sqrt, 0},
		{"Rsqrt", mapped[F](kernel.Rsqrt), func(x float64) float64 { return 1 / math.Sqrt(x) }, 2},
		{"Reciprocal", mapped[F](kernel.Reciprocal), func(x float64) float64 { return 1 / x }, 0},
		{"Cube", mapped[F](kernel.Cube), func(x float64) float64 { return float64(F(x*x)) * x }, 0},
	}
}

// exactLog knows numbers below the normal ones, which math.Log of amd64 does not.
func exactLog(x float64) float64 {
	fraction, exp := math.Frexp(x)
	if exp > -1000 {
		return math.Log(x)
	}
	return math.Log(fraction) + float64(exp)*math.Ln2
}

func mapped[F kernel.Float](f kernel.Function) func(x, y []F) {
	return func(x, y []F) { kernel.Map(f, x, y) }
}

func isDouble[F kernel.Float]() bool {
	_, ok := any(F(0)).(float64)
	return ok
}

// unit is the distance of numbers of F around x, one in the last place.
func unit[F kernel.Float](x float64) float64 {
	x = math.Abs(x)
	if isDouble[F]() {
		x = min(x, math.Nextafter(math.MaxFloat64, 0))
		return math.Nextafter(x, math.Inf(1)) - x
	}
	single := min(float32(x), math.Nextafter32(math.MaxFloat32, 0))
	return float64(math.Nextafter32(single, math.MaxFloat32) - single)
}

func (e exponential[F]) check(t rapid.TB, x []F) {
	y := make([]F, len(x))
	e.do(x, y)
	for i, v := range x {
		want := e.exact(float64(v))
		switch got := float64(y[i]); {
		case math.IsNaN(want) && math.IsNaN(got), F(got) == F(want):
		case math.IsInf(want, 1) && v < F(math.Log(math.MaxFloat64)): // math.Exp of amd64 overflows a little too early
		case !(math.Abs(got-want) <= e.units*unit[F](want)):
			t.Fatalf("%s of %v is %v, want %v: %.2f units in the last place away", e.name, v, got, want,
				math.Abs(got-want)/unit[F](want))
		}
	}
}

// special is where something ends.
func special[F kernel.Float]() (x []F) {
	for _, v := range []float64{0, math.Inf(1), math.NaN(), 5e-324, 1e-310, 1e-45, 1e-40, 1e-38, 1e-8,
		0.5 * math.Ln2, math.Ln2, 1, 17, 19.1, 20, 40,
		87.33, 88.72283, 88.72284, 88.73, 103.27, 103.28, 103.97, 103.98, 104, 709.78, 709.79, 708.4, 744.44,
		745.13, 745.14, 746, 1e10, 3e38, 1e308} {
		x = append(x, F(v), F(-v))
	}
	return x
}

func checkExponentials[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	x := drawNumbers[F](t, "x", rapid.IntRange(0, 100).Draw(t, "n"))
	size := math.Exp(rapid.Float64Range(-60, 7).Draw(t, "size"))
	for i := range x {
		x[i] *= F(size)
	}
	for _, e := range exponentials[F]() {
		e.check(t, x)
	}
}

func TestExponentialsAreThoseOfPackageMath(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkExponentials[float32]))
	t.Run("float64", rapid.MakeCheck(checkExponentials[float64]))
}

// Numbers of all sizes, down to those that are not normal, and the ends of the range.
func TestExponentialsOfAllSizes(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		var single []float32
		for b := uint64(0); b < 1<<32; b += 1<<16 + 77 {
			single = append(single, math.Float32frombits(uint32(b)))
		}
		for _, e := range exponentials[float32]() {
			e.check(t, append(special[float32](), single...))
		}
		double := special[float64]()
		for b := uint64(0); b < 1<<63; b += 1<<48 + 12345 {
			double = append(double, math.Float64frombits(b), -math.Float64frombits(b))
		}
		for _, e := range exponentials[float64]() {
			e.check(t, double)
		}
	})
}

// Sines and cosines of all numbers that the loops know, next to each multiple of π/2 as well, where
// those of package math are off by many units, and of pieces in which one number is larger or none.
func TestWaves(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		checkWaves[float32](t, 1<<15)
		checkWaves[float64](t, 1<<20)
	})
}

func checkWaves[F kernel.Float](t *testing.T, farthest float64) {
	var far, near []F
	for i := range 8192 {
		x := farthest * float64(i) / 8191
		multiple := math.Floor(x/(math.Pi/2)) * math.Pi / 2
		far = append(far, F(x), F(-x), F(x)/1024)
		near = append(near, F(multiple), F(-multiple), F(multiple*(1-1e-9)))
	}
	for _, e := range []exponential[F]{
		{"Sin", mapped[F](kernel.Sin), func(x float64) float64 { return exactWave(x, 0) }, 1.5},
		{"Cos", mapped[F](kernel.Cos), func(x float64) float64 { return exactWave(x, 1) }, 1.5},
	} {
		e.check(t, far)
		if kernel.Level() != "portable" {
			e.check(t, near)
		}
		for _, odd := range []float64{2 * farthest, -1e30, math.Inf(1), math.NaN()} {
			for _, at := range []int{0, 77, 4095} {
				mixed := append([]F(nil), far[:2*4096]...)
				mixed[at] = F(odd)
				e.check(t, mixed)
			}
		}
	}
}

// quarter is π/2.
var quarter, _ = new(big.Float).SetPrec(300).SetString(
	"1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931401741267105853399107404326")

// exactWave is the sine of x + quarters·π/2, also next to multiples of π/2, where that of package
// math is off by many units.
func exactWave(x float64, quarters int64) float64 {
	if math.Abs(x) > 1<<30 || x != x {
		return [...]func(float64) float64{math.Sin, math.Cos}[quarters](x)
	}
	n := int64(math.Round(x * 2 / math.Pi))
	rest := new(big.Float).SetPrec(300).Mul(quarter, new(big.Float).SetInt64(n))
	r, _ := rest.Sub(new(big.Float).SetPrec(300).SetFloat64(x), rest).Float64()
	switch (n + quarters) & 3 {
	case 0:
		return math.Sin(r)
	case 1:
		return math.Cos(r)
	case 2:
		return -math.Sin(r)
	}
	return -math.Cos(r)
}

// What is odd has -0 of -0.
func TestZeroKeepsItsSign(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		for _, f := range []kernel.Function{kernel.Sin, kernel.Atan, kernel.Log1p, kernel.Expm1, kernel.Erf} {
			x := make([]float32, 40)
			for i := range x {
				x[i] = float32(math.Copysign(0, float64(i%2*2-1)))
			}
			y := make([]float32, len(x))
			kernel.Map(f, x, y)
			for i := range x {
				if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
					t.Fatalf("function %d of %v is %v", f, x[i], y[i])
				}
			}
		}
	})
}

// The root of each number between 1 and 4 is that of IEEE 754, and so are those of numbers that
// differ from them by powers of four. Others are those of an instruction.
func TestSqrt_IsRoundedAsTheStandardSays(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		x, y := make([]float32, 1<<12), make([]float32, 1<<12)
		step, first := 1, math.Float32bits(1)
		if kernel.Level() == "portable" || testing.Short() {
			step = 97 // there it is the root of float64, rounded
		}
		check := func() {
			t.Helper()
			kernel.Map(kernel.Sqrt, x, y)
			for i, v := range x {
				if want := float32(math.Sqrt(float64(v))); y[i] != want && !(want != want && y[i] != y[i]) ||
					math.Signbit(float64(y[i])) != math.Signbit(float64(want)) && want == want {
					t.Fatalf("the root of %v is %v, want %v", v, y[i], want)
				}
			}
		}
		for from := 0; from < 1<<24; from += len(x) * step {
			for i := range x {
				x[i] = math.Float32frombits(first + uint32((from+i*step)%(1<<24)))
			}
			check()
		}
		for round := range 64 { // numbers of all sizes and signs
			for i := range x {
				x[i] = math.Float32frombits(uint32(round*len(x)+i) * 0x9e3779b1)
			}
			check()
			for i := range x { // and registers with one of them
				x[i] = 2
			}
			x[round] = []float32{0, float32(math.Copysign(0, -1)), 1e-45, -1, float32(math.Inf(1)), 1e-38, 0x1p-100,
				math.MaxFloat32}[round%8]
			check()
		}
	})
}

func signOf(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// Generators make the same numbers on all machines, so the factors of the polar method have the
// same bits on all levels: those of steps that are rounded one by one.
func TestPolar_HasTheSameBitsOnAllLevels(t *testing.T) {
	var x []float64
	for i := range 1 << 14 {
		x = append(x, (float64(i)+0.5)/(1<<14), math.Ldexp(1+float64(i)/(1<<14), -1-i%105))
	}
	x = append(x, math.Sqrt2/2, math.Nextafter(math.Sqrt2/2, 0), math.Nextafter(1, 0), 0.5, 0x1p-104)
	for e := range 105 { // all bits of a divisor are set
		x = append(x, math.Ldexp(math.Nextafter(1, 0), -e), math.Ldexp(1-0x1p-52, -e))
	}
	var want []float64
	onEachLevel(t, func(t *testing.T) {
		y := make([]float64, len(x))
		kernel.Polar(x, y)
		for i, v := range x {
			exact := math.Sqrt(-2 * math.Log(v) / v)
			if math.Abs(y[i]-exact) > 8*unit[float64](exact) && v < 0.999 {
				t.Fatalf("the factor of %v is %v, want %v", v, y[i], exact)
			}
			if want != nil && math.Float64bits(y[i]) != math.Float64bits(want[i]) {
				t.Fatalf("the factor of %v is %v, and %v on another level", v, y[i], want[i])
			}
		}
		want = y
	})
}
