package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
	"pgregory.net/rapid"
)

// noise is n reproducible numbers in [-1, 1).
func noise[F kernel.Float](seed uint64, n int) []F {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]F, n)
	for i := range x {
		x[i] = F(2*r.Float64() - 1)
	}
	return x
}

// widen is x in double precision.
func widen[F kernel.Float](x []F) []float64 {
	if x == nil {
		return nil
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// near fails unless got is want up to rounding: a few units in the last place of F for numbers
// around scale.
func near[F kernel.Float](t rapid.TB, what string, got []F, want []float64, scale float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	tolerance := scale * 1e-13
	var f F
	if _, ok := any(f).(float32); ok {
		tolerance = scale * 2e-6
	}
	for i, v := range got {
		if float64(v) == want[i] || math.IsNaN(float64(v)) && math.IsNaN(want[i]) {
			continue // also infinities
		}
		if !(math.Abs(float64(v)-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, v, want[i])
		}
	}
}

// oneThread lets kernels run on the calling goroutine alone, until the test ends.
func oneThread(tb testing.TB) {
	before := kernel.Threads()
	kernel.SetThreads(1)
	tb.Cleanup(func() { kernel.SetThreads(before) })
}

// slope fails unless gradient is the derivative of f at x, by central differences.
func slope(t rapid.TB, what string, x, gradient []float64, f func() float64) {
	t.Helper()
	const step = 1e-5
	for i, v := range x {
		x[i] = v + step
		above := f()
		x[i] = v - step
		below := f()
		x[i] = v
		if want := (above - below) / (2 * step); math.Abs(gradient[i]-want) > 1e-6*(1+math.Abs(want)) {
			t.Fatalf("the gradient of %s[%d] is %v, but differences give %v", what, i, gradient[i], want)
		}
	}
}

// dot is the sum of the products: what turns an output into one number with gradient y.
func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// panics is what f panics with, or nil.
func panics(f func()) (reason any) {
	defer func() { reason = recover() }()
	f()
	return nil
}

// memory is x as bytes.
func memory[F kernel.Float](x []F) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(F(0))))
}
