package nn_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A Scale layer multiplies each feature by a learned number. It is the one of docs/layers.md.
type Scale struct {
	Weight *autograd.Param // (features)
	Calls  *tensor.Tensor  // Int64: a buffer, in the state but not trained
}

func NewScale(features int) *Scale {
	return &Scale{autograd.NewParam("weight", tensor.Ones(tensor.Float32, features)), tensor.New(tensor.Int64)}
}

// Forward takes x (..., features).
func (s *Scale) Forward(x *autograd.Var) *autograd.Var {
	s.Calls.AddScalarAtomic(1)
	return autograd.Mul(x, s.Weight.Var())
}

// A layer of one's own is a struct.
func ExampleParams() {
	m := nn.NewSequential(NewScale(2), nn.ReLU)
	y := m.Forward(autograd.Const(tensor.FromSlice([]float32{-1, 3}, 1, 2)))
	state := nn.State(m)
	fmt.Println(y.T().ToNested(), slices.Sorted(maps.Keys(state)), state["0.calls"].ToNested())
	// Output: [[0 3]] [0.calls 0.weight] 1
}
