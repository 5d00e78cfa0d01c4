package kernel_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

func checkElementwise[F kernel.Float](t *rapid.T) {
	n := rapid.IntRange(0, 40).Draw(t, "n")
	alpha := F(rapid.Float64Range(-2, 2).Draw(t, "alpha"))
	x, y := noise[F](rapid.Uint64().Draw(t, "x"), n), noise[F](rapid.Uint64().Draw(t, "y"), n)
	relu, back, axpy, scale := make([]float64, n), make([]float64, n), widen(y), widen(x)
	for i, v := range x {
		relu[i] = max(float64(v), 0)
		if v > 0 {
			back[i] = float64(y[i])
		}
		axpy[i] += float64(alpha) * float64(v)
		scale[i] *= float64(alpha)
	}
	got, dx := make([]F, n), noise[F](9, n)
	kernel.Relu(x, got)
	near(t, "relu", got, relu, 1)
	kernel.ReluBackward(got, y, dx)
	near(t, "relu backward", dx, back, 1)
	kernel.Axpy(alpha, x, y)
	near(t, "axpy", y, axpy, 2)
	kernel.Scale(alpha, x)
	near(t, "scale", x, scale, 2)
}

func TestElementwiseKernelsAreTheirFormulas(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkElementwise[float32]))
	t.Run("float64", rapid.MakeCheck(checkElementwise[float64]))
}

func TestReluKeepsNaN(t *testing.T) {
	for _, sign := range []float32{1, -1} {
		x := []float32{float32(math.Copysign(math.NaN(), float64(sign)))}
		kernel.Relu(x, x)
		if x[0] == x[0] {
			t.Errorf("relu of a NaN is %v", x[0])
		}
	}
}

func checkBias[F kernel.Float](t *rapid.T) {
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
