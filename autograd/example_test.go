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

// A second loss is derived through values that the first one was computed from.
func ExampleVar_BackwardWith() {
	w := autograd.NewParam("w", tensor.Scalar(tensor.Float64, 3))
	h := autograd.Mul(w.Var(), w.Var())
	first, second := autograd.MulScalar(h, 2), autograd.Exp(autograd.MulScalar(h, 0))
	first.BackwardWith(autograd.BackwardOptions{RetainGraph: true})
	second.Backward()
	fmt.Println(w.Grad.Item())
	// Output: 12
}

// The derivative of x³, and its own.
func ExampleGrad() {
	x := autograd.Leaf(tensor.Scalar(tensor.Float64, 2))
	y := autograd.Pow(x, 3)
	dx := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
	ddx := autograd.Grad([]*autograd.Var{dx}, []*autograd.Var{x}, autograd.GradOptions{})[0]
	fmt.Println(dx.Item(), ddx.Item())
	// Output: 12 12
}

// A penalty on how far a critic's slope is from 1, as WGAN-GP has it: what it adds to the weight's
// gradient comes from a derivative of a derivative.
func ExampleGrad_gradientPenalty() {
	w := autograd.NewParam("w", tensor.FromSlice([]float64{3, 4}, 1, 2))
	x := autograd.Leaf(tensor.FromSlice([]float64{1, 2, -1, 1}, 2, 2))
	critic := autograd.Sum(autograd.Linear(x, w.Var(), nil))
	dx := autograd.Grad([]*autograd.Var{critic}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})[0]
	off := autograd.AddScalar(autograd.Norm(dx, 1), -1)
	autograd.Mean(autograd.Mul(off, off)).Backward()
	fmt.Printf("%.1f\n", tensor.Data[float64](w.Grad))
	// Output: [4.8 6.4]
}

// The product of a Hessian and a vector, without the Hessian.
func ExampleGradOptions() {
	x, v := autograd.Leaf(tensor.FromSlice([]float64{1, 2}, 2)), autograd.Const(tensor.FromSlice([]float64{1, 0}, 2))
	y := autograd.Prod(autograd.Mul(x, x)) // x₀²x₁², whose Hessian is [2x₁² 4x₀x₁; 4x₀x₁ 2x₀²]
	g := autograd.Grad([]*autograd.Var{y}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})
	hv := autograd.Grad(g, []*autograd.Var{x}, autograd.GradOptions{GradOutputs: []*autograd.Var{v}})[0]
	fmt.Println(tensor.Data[float64](hv.T()))
	// Output: [8 8]
}

// A hook limits the gradient that goes on to what a value was computed from.
func ExampleVar_RegisterHook() {
	w := autograd.NewParam("w", tensor.Scalar(tensor.Float64, 3))
	h := autograd.MulScalar(w.Var(), 2)
	remove := h.RegisterHook(func(g *autograd.Var) *autograd.Var { return autograd.Clamp(g, -1, 1) })
	defer remove()
	autograd.MulScalar(h, 100).Backward()
	fmt.Println(w.Grad.Item())
	// Output: 2
}

// A step of each parameter while Backward goes on to the others: no two gradients are kept at a
// time.
func ExampleParam_RegisterPostAccumulateGradHook() {
	w := autograd.NewParam("w", tensor.Scalar(tensor.Float64, 3))
	w.RegisterPostAccumulateGradHook(func(p *autograd.Param) {
		p.T.AxpyInPlace(-0.1, p.Grad)
		p.Grad = nil
	})
	autograd.Mul(w.Var(), w.Var()).Backward()
	fmt.Printf("%.2f\n", w.T.Item())
	// Output: 2.40
}

// What the function computes on the way is not kept until Backward, but computed again.
func ExampleCheckpoint() {
	w := autograd.NewParam("w", tensor.Scalar(tensor.Float64, 0))
	y := autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var {
		fmt.Println("called")
		return autograd.Exp(autograd.Mul(in[0], w.Var()))
	}, autograd.Const(tensor.Scalar(tensor.Float64, 5)))
	y.Backward()
	fmt.Println(w.Grad.Item())
	// Output:
	// called
	// called
	// 5
}

// A generator that the function draws from is put back for the second call.
func ExampleCheckpointWith() {
	g := tensor.NewGenerator(1)
	x := autograd.Leaf(tensor.Ones(tensor.Float64, 6))
	y := autograd.CheckpointWith([]*tensor.Generator{g}, func(in ...*autograd.Var) *autograd.Var {
		return autograd.Dropout(in[0], 0.5, g, true)
	}, x)
	autograd.Sum(y).Backward()
	fmt.Println(tensor.Equal(y.T(), x.Grad())) // of ones, what is kept is what it is multiplied by
	// Output: true
}

// A softmax over the first dimension.
func ExampleSoftmax() {
	x := autograd.Const(tensor.FromSlice([]float64{0, 1, 0, 1}, 2, 2))
	fmt.Println(tensor.Data[float64](autograd.Softmax(x, 0).T()))
	// Output: [0.5 0.5 0.5 0.5]
}
