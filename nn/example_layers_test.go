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
	c := nn.NewConv2d(1, 2, 3, nil)
	c.Groups = 2
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

// What stands later in a sequence changes nothing of what stands before it.
func ExampleTransformerEncoderLayer() {
	l := nn.NewTransformerEncoderLayer(8, 2, 16, 0.1, nil)
	l.SelfAttn.BatchFirst = true
	nn.Eval(l)
	x := tensor.RandN(tensor.Float32, nil, 1, 5, 8)
	before := l.Encode(autograd.NoGrad(x), nn.AttentionMask{Causal: true}).T()
	x.Select(1, 4).Zero()
	after := l.Encode(autograd.NoGrad(x), nn.AttentionMask{Causal: true}).T()
	for i := range 5 {
		fmt.Print(tensor.All(tensor.Eq(before.Select(1, i), after.Select(1, i))).ToNested(), " ")
	}
	// Output: true true true true false
}

func ExampleMultiheadAttention() {
	m := nn.NewMultiheadAttention(8, 2, nil)
	q, kv := autograd.NoGrad(tensor.Ones(tensor.Float32, 3, 1, 8)),
		autograd.NoGrad(tensor.Ones(tensor.Float32, 4, 1, 8))
	y, w := m.AttendWeights(q, kv, kv, nn.AttentionMask{})
	fmt.Println(y.Shape(), w.Shape(), tensor.At[float32](w.T(), 0, 0, 0))
	// Output: [3 1 8] [1 3 4] 0.25
}

// Keys of 3 features and values of 5 are projected to the 8 features of the queries.
func ExampleNewMultiheadAttentionWith() {
	m := nn.NewMultiheadAttentionWith(8, 2, nil, nn.AttentionOptions{KDim: 3, VDim: 5})
	ones := func(shape ...int) *autograd.Var { return autograd.NoGrad(tensor.Ones(tensor.Float32, shape...)) }
	y := m.Attend(ones(2, 1, 8), ones(4, 1, 3), ones(4, 1, 5), nn.AttentionMask{})
	fmt.Println(y.Shape())
	// Output: [2 1 8]
}

func ExampleLSTM() {
	l := nn.NewLSTM(3, 4, nil, nn.RecurrentOptions{Layers: 2, Bidirectional: true})
	y, h, c := l.Run(autograd.NoGrad(tensor.Ones(tensor.Float32, 5, 1, 3)), nil, nil)
	fmt.Println(y.Shape(), h.Shape(), c.Shape())
	// Output: [5 1 8] [4 1 4] [4 1 4]
}

// A sequence in two parts gives what it gives in one.
func ExampleGRU() {
	g := nn.NewGRU(3, 4, nil, nn.RecurrentOptions{})
	x := tensor.RandN(tensor.Float32, nil, 6, 1, 3)
	_, whole := g.Run(autograd.NoGrad(x), nil)
	_, half := g.Run(autograd.NoGrad(x.Narrow(0, 0, 3)), nil)
	_, rest := g.Run(autograd.NoGrad(x.Narrow(0, 3, 3)), half)
	fmt.Println(tensor.Abs(tensor.Sub(whole.T(), rest.T())).Sum() < 1e-5)
	// Output: true
}
