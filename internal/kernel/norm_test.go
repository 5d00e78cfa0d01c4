package kernel_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// normalized is Normalize by the book.
func normalized(n kernel.Norm, x, w, b []float64) []float64 {
	cols := n.Per * n.Run
	y := make([]float64, len(x))
	for r := range n.Rows {
		row := x[r*cols:][:cols]
		var mean, variance float64
		for _, v := range row {
			mean += v / float64(cols)
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(cols)
		}
		for i, v := range row {
			p := r%n.Groups*n.Per + i/n.Run
			y[r*cols+i] = (v-mean)/math.Sqrt(variance+n.Eps)*w[p] + b[p]
		}
	}
	return y
}

func drawNorm(t *rapid.T) kernel.Norm {
	size := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	groups := size("groups", 3)
	return kernel.Norm{Rows: groups * size("examples", 5), Groups: groups, Per: size("per", 40),
		Run: rapid.SampledFrom([]int{1, 1, 2, 17}).Draw(t, "run"), Eps: 0.1}
}

func TestNormalizeIsWhatTheBookSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		onSomeMachine(t)
		n := drawNorm(t)
		params, size := n.Groups*n.Per, n.Rows*n.Per*n.Run
		x, w, b, dy := noise[float64](1, size), noise[float64](2, params), noise[float64](3, params),
			noise[float64](4, size)
		y, means, scales := make([]float64, size), make([]float64, n.Rows), make([]float64, n.Rows)
		kernel.Normalize(n, x, w, b, y, means, scales)
		near(t, "y", y, normalized(n, x, w, b), 1)
		dx, dw, db := make([]float64, size), make([]float64, params), make([]float64, params)
		kernel.NormalizeBackward(n, x, w, dy, means, scales, dx, dw, db, nil)
		f := func() float64 { return dot(normalized(n, x, w, b), dy) }
		slope(t, "w", w, dw, f)
		slope(t, "b", b, db, f)
		if size < 200 {
			slope(t, "x", x, dx, f)
		}
	})
}

// A mean that is much larger than the deviations, in float32.
func TestNormalizeLosesNothingToTheMean(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		n := kernel.Norm{Rows: 1, Groups: 1, Per: 100, Run: 1}
		x, ones, zeros := make([]float32, 100), make([]float64, 100), make([]float64, 100)
		for i := range x {
			x[i], ones[i] = float32(100000+float64(i)/16), 1 // each of which is a float32
		}
		y, means, scales := make([]float32, 100), make([]float64, 1), make([]float64, 1)
		kernel.Normalize(n, x, nil, nil, y, means, scales)
		near(t, "y", y, normalized(n, widen(x), ones, zeros), 1)
	})
}

func TestNormalizeIsTheSameWithAnyNumberOfThreads(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		n := kernel.Norm{Rows: 300, Groups: 1, Per: 100, Run: 1, Eps: 1e-5}
		x, w, dy := noise[float32](1, 30000), noise[float32](2, 100), noise[float32](3, 30000)
		run := func(threads int) [][]float32 {
			before := kernel.Threads()
			defer kernel.SetThreads(before)
			kernel.SetThreads(threads)
			y, dx, dw, db := make([]float32, 30000), make([]float32, 30000), make([]float32, 100), make([]float32, 100)
			means, scales := make([]float64, 300), make([]float64, 300)
			kernel.Normalize(n, x, w, w, y, means, scales)
			kernel.NormalizeBackward(n, x, w, dy, means, scales, dx, dw, db, nil)
			return [][]float32{y, dx, dw, db}
		}
		want := run(1)
		for threads := 2; threads <= 5; threads++ {
			if got := run(threads); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%d threads compute other numbers", threads)
			}
		}
	})
}
