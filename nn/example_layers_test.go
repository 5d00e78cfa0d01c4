package nn_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// Each half of the channels has mean 0 and variance 1 then.
func ExampleGroupNorm() {
	g := nn.NewGroupNorm(2, 4)
	g.Eps = 0
	y := g.Forward(autograd.NoGrad(tensor.FromSlice([]float32{1, 3, 10, 30}, 1, 4)))
	fmt.Println(y.T().ToNested())
	// Output: [[-1 1 -1 1]]
}

func ExampleBatchNorm1d() {
	b := nn.NewBatchNorm1d(2)
	b.Forward(autograd.Const(tensor.FromSlice([]float32{0, 5, 5, 15}, 2, 2)))
	fmt.Println(b.RunningMean.ToNested(), b.NumBatchesTracked.ToNested())
	// Output: [0.25 1] 1
}

func ExamplePReLU() {
	p := nn.NewPReLU(1)
	fmt.Println(p.Forward(autograd.NoGrad(tensor.FromSlice([]float32{-4, 2}, 2))).T().ToNested())
	// Output: [-1 2]
}

// A filter for each channel, and images that go on at the other side.
func ExampleConv2d() {
	c := nn.NewGroupedConv2d(2, 2, 3, 2, nil)
	c.Same, c.Mode, c.Bias = true, autograd.PadCircular, nil
	c.Weight.T.Fill(1)
	y := c.Forward(autograd.NoGrad(tensor.Ones(tensor.Float32, 1, 2, 4, 4)))
	fmt.Println(y.Shape(), tensor.At[float32](y.T(), 0, 0, 0, 0))
	// Output: [1 2 4 4] 9
}

func ExampleConv1d() {
	c := nn.NewConv1d(1, 1, 2, nil)
	c.Bias = nil
	c.Weight.T.CopyFrom(tensor.FromSlice([]float32{-1, 1}, 1, 1, 2))
	fmt.Println(c.Forward(autograd.NoGrad(tensor.FromSlice([]float32{1, 3, 6, 10}, 1, 1, 4))).T().ToNested())
	// Output: [[[2 3 4]]]
}
