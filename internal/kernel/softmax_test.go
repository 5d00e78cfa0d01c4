package kernel_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

func checkLogSoftmax[F kernel.Float](t *rapid.T) {
	onSomeMachine(t)
	rows, cols := rapid.IntRange(0, 5).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "cols")
	x := noise[F](rapid.Uint64().Draw(t, "x"), rows*cols)
	want := make([]float64, len(x))
	for r := range rows {
		var sum float64
		for _, v := range x[r*cols:][:cols] {
			sum += math.Exp(float64(v))
		}
		for c := range cols {
			want[r*cols+c] = float64(x[r*cols+c]) - math.Log(sum)
		}
	}
	y := make([]F, len(x))
	kernel.Softmax(rows, cols, x, y)
	kernel.LogSoftmax(rows, cols, x, x) // in place
	near(t, "log-softmax", x, want, 4)
	for i, v := range want {
		want[i] = math.Exp(v)
	}
	near(t, "softmax", y, want, 4)
}

func TestLogSoftmaxIsItsFormula(t *testing.T) {
	t.Run("float32", rapid.MakeCheck(checkLogSoftmax[float32]))
	t.Run("float64", rapid.MakeCheck(checkLogSoftmax[float64]))
}

func TestLogSoftmaxOfHugeNumbersDoesNotOverflow(t *testing.T) {
	x := []float32{3e38, -3e38, 0}
	kernel.LogSoftmax(1, 2, x[:2], x[:2])
	if x[0] != 0 || !(x[1] < -3e38) {
		t.Fatalf("log-softmax = %v", x[:2])
	}
}

func TestSoftmaxBackwardIsTheSlopeOfSoftmax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		rows, cols := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "cols")
		x, dy := noise[float64](1, rows*cols), noise[float64](2, rows*cols)
		y, dx := make([]float64, len(x)), make([]float64, len(x))
		loss := func() float64 {
			kernel.Softmax(rows, cols, x, y)
			return dot(y, dy)
		}
		loss()
		kernel.SoftmaxBackward(rows, cols, y, dy, dx)
		slope(t, "x", x, dx, loss)
	})
}

func TestLogSoftmaxBackwardIsTheSlopeOfLogSoftmax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		rows, cols := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "cols")
		x, dy := noise[float64](1, rows*cols), noise[float64](2, rows*cols)
		y, dx := make([]float64, len(x)), make([]float64, len(x))
		loss := func() float64 {
			kernel.LogSoftmax(rows, cols, x, y)
			return dot(y, dy)
		}
		loss()
		kernel.LogSoftmaxBackward(rows, cols, y, dy, dx)
		slope(t, "x", x, dx, loss)
	})
}

func TestTheLossesAreTheirFormulasAndSlopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 4).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "cols")
		target := rapid.SliceOfN(rapid.Int64Range(0, int64(cols-1)), rows, rows).Draw(t, "target")
		scale := rapid.Float64Range(-2, 2).Draw(t, "scale")
		x, y, dx := noise[float64](1, rows*cols), noise[float64](2, rows*cols), noise[float64](3, rows*cols)

		var nll, mse float64
		for r, class := range target {
			nll -= x[r*cols+int(class)]
		}
		for i, v := range x {
			mse += (v - y[i]) * (v - y[i])
		}
		near(t, "losses", []float64{kernel.NLLLoss(rows, cols, x, target), kernel.MSELoss(x, y)},
			[]float64{nll, mse}, 20)

		kernel.NLLLossBackward(rows, cols, target, scale, dx)
		slope(t, "x of NLLLoss", x, dx, func() float64 { return scale * kernel.NLLLoss(rows, cols, x, target) })
		kernel.MSELossBackward(x, y, scale, dx)
		slope(t, "x of MSELoss", x, dx, func() float64 { return scale * kernel.MSELoss(x, y) })
	})
}

func TestAClassOutsideOfTheColumnsPanics(t *testing.T) {
	for _, class := range []int64{-1, 3, math.MaxInt64} {
		if panics(func() { kernel.NLLLoss(2, 3, make([]float32, 6), []int64{0, class}) }) == nil {
			t.Errorf("NLLLoss accepted class %d of 3", class)
		}
	}
}
