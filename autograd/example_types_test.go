package autograd_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// image returns the numbers from 0 on as (1, 1, h, w).
func image(h, w int) *autograd.Var {
	t := tensor.New(tensor.Float32, 1, 1, h, w)
	for i, data := 0, tensor.Data[float32](t); i < len(data); i++ {
		data[i] = float32(i)
	}
	return autograd.Const(t)
}

func show(v *autograd.Var) { fmt.Println(v.T().ToNested()) }

// A window of 2 by 2 moves over an image by its own size.
func ExampleWindow() {
	show(autograd.MaxPool2d(image(4, 4), autograd.Window{Size: [2]int{2, 2}}))
	// Output: [[[[5 7] [13 15]]]]
}

// A column of zeros stands before the image, and a row of them below it.
func ExamplePad2d() {
	show(autograd.Pad2d(image(1, 2), [2][2]int{{0, 1}, {1, 0}}, autograd.PadZeros))
	// Output: [[[[0 0 1] [0 0 0]]]]
}

func ExamplePadMode() {
	for _, mode := range []autograd.PadMode{autograd.PadReflect, autograd.PadReplicate, autograd.PadCircular} {
		show(autograd.Pad2d(image(1, 3), [2][2]int{{}, {1, 1}}, mode))
	}
	// Output:
	// [[[[1 0 1 2 1]]]]
	// [[[[0 0 1 2 2]]]]
	// [[[[2 0 1 2 0]]]]
}

func ExampleReduction() {
	x := autograd.Const(tensor.FromSlice([]float32{1, 2}, 2))
	zero := autograd.Const(tensor.New(tensor.Float32, 2))
	for _, r := range []autograd.Reduction{autograd.ByMean, autograd.BySum, autograd.Unreduced} {
		show(autograd.MSELoss(x, zero, r))
	}
	// Output:
	// 2.5
	// 5
	// [1 4]
}

// The second class does not count.
func ExampleClassification() {
	logp := autograd.Const(tensor.FromSlice([]float32{-1, -2, -3, -4}, 2, 2))
	target := tensor.FromSlice([]int64{0, 1}, 2)
	show(autograd.NLLLoss(logp, target, autograd.Classification{}))
	show(autograd.NLLLoss(logp, target, autograd.Classification{Ignore: []int64{1}}))
	// Output:
	// 2.5
	// 1
}

// Each query sees itself and those before it.
func ExampleAttention() {
	q := autograd.Const(tensor.New(tensor.Float32, 3, 1)) // of length 3, with one feature
	v := autograd.Const(tensor.FromSlice([]float32{2, 4, 9}, 3, 1))
	show(autograd.ScaledDotProductAttention(q, q, v, autograd.Attention{Causal: true}))
	// Output: [[2] [3] [5]]
}

// A GRU with no weight for its states keeps half of the state in front of each element.
func ExampleRecurrence() {
	gates := autograd.Const(tensor.New(tensor.Float32, 2, 1, 3)) // two elements of one example
	h := autograd.Const(tensor.Ones(tensor.Float32, 1, 1))
	weight := autograd.Const(tensor.New(tensor.Float32, 3, 1))
	states, last := autograd.GRU(gates, h, autograd.Recurrence{Weight: weight})
	show(states)
	show(last)
	// Output:
	// [[[0.5]] [[0.25]]]
	// [[0.25]]
}
