package autograd_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

func Example() {
	w := autograd.NewParam("w", tensor.FromSlice([]float64{1, 2}, 2))
	x := autograd.Const(tensor.FromSlice([]float64{3, 4}, 2))
	loss := autograd.Sum(autograd.Mul(w.Var(), x))
	loss.Backward()
	fmt.Println(loss.Item(), tensor.Data[float64](w.Grad))
	// Output: 11 [3 4]
}

// A scope lends the memory of each step to the next.
func ExampleScope() {
	w := autograd.NewParam("w", tensor.FromSlice([]float64{0}, 1, 1))
	s := autograd.NewScope()
	for range 3 {
		x := s.Const(tensor.FromSlice([]float64{2}, 1, 1))
		autograd.Sum(autograd.Linear(x, w.Var(), nil)).Backward()
		s.Reset()
	}
	fmt.Println(w.Grad.Item())
	// Output: 6
}
