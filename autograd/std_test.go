package autograd_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// The squares of these elements are 0 or infinite in Float32. The gradient of a standard deviation
// of two elements is ±√½, whatever they are.
func TestStd_OfElementsWhoseSquaresCannotBeRepresented(t *testing.T) {
	for _, size := range []float32{1e-30, 1e30} {
		x := autograd.Leaf(tensor.FromSlice([]float32{size, 3 * size}, 2))
		y := autograd.Std(x)
		if got, want := y.T().Item(), float64(size)*math.Sqrt2; math.Abs(got-want) > 1e-6*want {
			t.Errorf("Std of %v and %v: %v, want %v", size, 3*size, got, want)
		}
		g := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{})[0].T()
		want := tensor.FromSlice([]float32{-math.Sqrt2 / 2, math.Sqrt2 / 2}, 2)
		if !tensor.AllClose(g, want, 1e-6, 0) {
			t.Errorf("gradient for %v and %v: %v, want %v", size, 3*size, g, want)
		}
	}
}
