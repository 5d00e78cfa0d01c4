package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

func checkElementwise[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	n := rapid.IntRange(0, 150).Draw(t, "n")
	alpha := F(rapid.Float64Range(-2, 2).Draw(t, "alpha"))
	x, y := drawNumbers[F](t, "x", n), drawNumbers[F](t, "y", n)
	total := 0.0
	relu, back, axpy, scale := make([]float64, n), make([]float64, n), widen(y), widen(x)
	for i, v := range x {
		relu[i] = max(float64(v), 0)
		total += float64(v)
		if !(v <= 0) {
			back[i] = float64(y[i])
		}
		axpy[i] += float64(alpha) * float64(v)
		scale[i] *= float64(alpha)
	}
	got, dx := make([]F, n), noise[F](9, n)
	products := 0.0
	for i, v := range x {
		products += float64(v) * float64(y[i])
	}
	near(t, "dot", []F{kernel.Dot(x, y)}, []float64{products}, 150)
	for _, p := range []struct {
		name string
		do   func(x, y, z []F)
		f    func(x, y float64) float64
	}{
		{"sum", kernel.Add[F], func(x, y float64) float64 { return x + y }},
		{"difference", kernel.Sub[F], func(x, y float64) float64 { return x - y }},
		{"product", kernel.Mul[F], func(x, y float64) float64 { return x * y }},
		{"quotient", kernel.Div[F], func(x, y float64) float64 { return x / y }},
		{"larger", kernel.Max[F], func(x, y float64) float64 { return max(x, y) }},
		{"smaller", kernel.Min[F], func(x, y float64) float64 { return min(x, y) }},
	} {
		want := make([]float64, n)
		for i, v := range x {
			want[i] = p.f(float64(v), float64(y[i]))
		}
		p.do(x, y, got)
		near(t, p.name, got, want, 1)
	}
	clamped := make([]float64, n)
	for i, v := range x {
		clamped[i] = min(max(float64(v), -0.5), float64(alpha))
	}
	if n > 0 {
		near(t, "largest", []F{kernel.Largest(x)}, []float64{slices.Max(widen(x))}, 1)
		near(t, "smallest", []F{kernel.Smallest(x)}, []float64{slices.Min(widen(x))}, 1)
	}
	kernel.Clamp(-0.5, alpha, x, got)
	near(t, "clamp", got, clamped, 1)
	kernel.Relu(x, got)
	near(t, "relu", got, relu, 1)
	near(t, "sum", []F{kernel.Sum(x)}, []float64{total}, 150)
	kernel.ReluBackward(got, y, dx)
	near(t, "relu backward", dx, back, 1)
	kernel.Axpy(alpha, x, y)
	near(t, "axpy", y, axpy, 2)
	kernel.Scale(alpha, x)
	near(t, "scale", x, scale, 2)
}

// drawNumbers draws n numbers that do not begin at an address of any alignment, some of them not
// finite.
func drawNumbers[F kernel.Float](t *rapid.T, name string, n int) []F {
	skip := rapid.IntRange(0, 3).Draw(t, name+" alignment")
	x := noise[F](rapid.Uint64().Draw(t, name), n+skip)[skip:]
	if n > 0 && rapid.Bool().Draw(t, name+" not finite") {
		special := []F{F(math.NaN()), F(math.Inf(1)), F(math.Inf(-1)), 0}
		for range 3 {
			x[rapid.IntRange(0, n-1).Draw(t, "at")] = rapid.SampledFrom(special).Draw(t, "value")
		}
	}
	return x
}

func checkDropout[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	run := rapid.SampledFrom([]int{1, 1, 2, 5, 64}).Draw(t, "run")
	kept := make([]F, rapid.IntRange(0, 70).Draw(t, "runs"))
	x := drawNumbers[F](t, "x", run*len(kept))
	want := widen(x)
	for i := range kept {
		kept[i] = F(rapid.IntRange(0, 1).Draw(t, "kept"))
		for j := range run {
			want[i*run+j] *= 1.25 * float64(kept[i])
		}
	}
	y := noise[F](1, len(x))
	kernel.Dropout(run, 1.25, kept, x, y)
	near(t, "y", y, want, 1)
	kernel.Dropout(run, 1.25, kept, x, x)
	near(t, "x in place", x, want, 1)
}

func TestDropoutKeepsOrDropsRuns(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkDropout[float32]))
	t.Run("float64", rapid.MakeCheck(checkDropout[float64]))
}

func TestElementwiseKernelsAreTheirFormulas(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkElementwise[float32]))
	t.Run("float64", rapid.MakeCheck(checkElementwise[float64]))
}

func TestReluKeepsNaN(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		for _, sign := range []float32{1, -1} {
			x := []float32{float32(math.Copysign(math.NaN(), float64(sign)))}
			kernel.Relu(x, x)
			if x[0] == x[0] {
				t.Errorf("relu of a NaN is %v", x[0])
			}
		}
	})
}

// What is too long for one call is cut.
func TestElementwiseKernelsReachTheEndOfLongSlices(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		x := make([]float32, 1<<19+3)
		for i := range x {
			x[i] = 1
		}
		y := make([]float32, len(x))
		kernel.Axpy(2, x, y)
		kernel.Relu(y, y)
		for i, v := range y {
			if v != 2 {
				t.Fatalf("element %d is %v, want 2", i, v)
			}
		}
		if got := kernel.Sum(y[:1<<19+1]); got != 1<<20+2 {
			t.Fatalf("the sum is %v", got)
		}
	})
}

func checkBias[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	rows, cols := rapid.IntRange(0, 9).Draw(t, "rows"), rapid.IntRange(0, 9).Draw(t, "cols")
	x, b := noise[F](1, rows*cols), noise[F](2, cols)
	sum, biased := widen(b), widen(x)
	for i, v := range x {
		sum[i%cols] += float64(v)
		biased[i] += float64(b[i%cols])
	}
	got := append([]F{}, b...)
	kernel.ColSum(rows, cols, x, got)
	near(t, "column sums", got, sum, 10)
	kernel.AddBias(rows, cols, x, b)
	near(t, "biased", x, biased, 2)
}

func TestAddBiasAndColSumWorkByColumn(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkBias[float32]))
	t.Run("float64", rapid.MakeCheck(checkBias[float64]))
}
