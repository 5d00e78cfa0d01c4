package nn_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// apply prints what a layer makes of some numbers.
func apply(l nn.Layer, x ...float32) {
	y := l.Forward(autograd.NoGrad(tensor.FromSlice(x, len(x))))
	for _, v := range tensor.Data[float32](y.T()) {
		fmt.Printf("%.3f ", v)
	}
}

func ExampleFunc() {
	apply(nn.Func{Name: "ReLU"}, -2, 0, 3)
	apply(nn.ReLU, -2, 0, 3)
	// Output: 0.000 0.000 3.000 0.000 0.000 3.000
}

func ExampleReLU() {
	apply(nn.ReLU, -2, 0, 3)
	// Output: 0.000 0.000 3.000
}

func ExampleReLU6() {
	apply(nn.ReLU6, -2, 3, 8)
	// Output: 0.000 3.000 6.000
}

func ExampleLeakyReLU() {
	apply(nn.LeakyReLU(0.1), -2, 3)
	// Output: -0.200 3.000
}

func ExampleELU() {
	apply(nn.ELU(1), -1, 2)
	// Output: -0.632 2.000
}

func ExampleCELU() {
	apply(nn.CELU(2), -1, 2)
	// Output: -0.787 2.000
}

func ExampleSELU() {
	apply(nn.SELU, -1, 1)
	// Output: -1.111 1.051
}

func ExampleGELU() {
	apply(nn.GELU, -1, 1)
	// Output: -0.159 0.841
}

func ExampleSiLU() {
	apply(nn.SiLU, -1, 1)
	// Output: -0.269 0.731
}

func ExampleMish() {
	apply(nn.Mish, -1, 1)
	// Output: -0.303 0.865
}

func ExampleSigmoid() {
	apply(nn.Sigmoid, -1, 0, 1)
	// Output: 0.269 0.500 0.731
}

func ExampleLogSigmoid() {
	apply(nn.LogSigmoid, -1, 0, 1)
	// Output: -1.313 -0.693 -0.313
}

func ExampleTanh() {
	apply(nn.Tanh, -1, 1)
	// Output: -0.762 0.762
}

func ExampleTanhshrink() {
	apply(nn.Tanhshrink, -1, 1)
	// Output: -0.238 0.238
}

func ExampleSoftsign() {
	apply(nn.Softsign, -1, 3)
	// Output: -0.500 0.750
}

func ExampleSoftplus() {
	apply(nn.Softplus(1, 20), 0, 1, 30)
	// Output: 0.693 1.313 30.000
}

func ExampleSoftshrink() {
	apply(nn.Softshrink(0.5), -2, 0.25, 1)
	// Output: -1.500 0.000 0.500
}

func ExampleHardshrink() {
	apply(nn.Hardshrink(0.5), -2, 0.25, 1)
	// Output: -2.000 0.000 1.000
}

func ExampleHardsigmoid() {
	apply(nn.Hardsigmoid, -4, 0, 1.5)
	// Output: 0.000 0.500 0.750
}

func ExampleHardswish() {
	apply(nn.Hardswish, -4, 1.5, 3)
	// Output: -0.000 1.125 3.000
}

func ExampleHardtanh() {
	apply(nn.Hardtanh(-1, 2), -4, 0.5, 3)
	// Output: -1.000 0.500 2.000
}

func ExampleThreshold() {
	apply(nn.Threshold(1, -7), 0.5, 1.5)
	// Output: -7.000 1.500
}

// Half of the numbers are gates of the others.
func ExampleGLU() {
	apply(nn.GLU(-1), 2, 4, 0, 100)
	// Output: 1.000 4.000
}

func ExampleIdentity() {
	apply(nn.Identity, 1, 2)
	// Output: 1.000 2.000
}

// Of each row, the last dimension.
func ExampleSoftmax() {
	y := nn.Softmax.Forward(autograd.NoGrad(tensor.FromSlice([]float32{0, 0, 5, 5}, 2, 2)))
	fmt.Println(y.T().ToNested())
	// Output: [[0.5 0.5] [0.5 0.5]]
}

func ExampleLogSoftmax() {
	y := nn.LogSoftmax.Forward(autograd.NoGrad(tensor.FromSlice([]float32{0, 0}, 1, 2)))
	fmt.Printf("%.3f\n", tensor.Data[float32](y.T()))
	// Output: [-0.693 -0.693]
}

func ExampleFlatten() {
	y := nn.Flatten.Forward(autograd.NoGrad(tensor.Ones(tensor.Float32, 2, 3, 4)))
	fmt.Println(y.Shape())
	// Output: [2 12]
}

func ExampleLinear() {
	l := nn.NewLinear(2, 1, nil)
	l.Weight.T.Fill(2)
	l.Bias.T.Fill(1)
	fmt.Println(l.Forward(autograd.NoGrad(tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2))).T().ToNested())
	// Output: [[7] [15]]
}

// Padding stays zeros, in training as well.
func ExampleEmbedding() {
	e := nn.NewEmbeddingWith(4, 2, nil, nn.EmbeddingOptions{Padding: []int64{0}})
	y := e.Forward(autograd.NoGrad(tensor.FromSlice([]int64{3, 0}, 2)))
	fmt.Println(y.Shape(), y.T().Select(0, 1).ToNested())
	// Output: [2 2] [0 0]
}

func ExampleSequential() {
	net := nn.NewSequential(nn.NewLinear(4, 8, nil), nn.ReLU, nn.NewLinear(8, 2, nil))
	for name, p := range nn.Named(net) {
		fmt.Println(name, p.T.Shape())
	}
	// Unordered output:
	// 0.weight [8 4]
	// 0.bias [8]
	// 2.weight [2 8]
	// 2.bias [2]
}

// In training some numbers are 0 and the others twice as large, so that the sum stays about what it
// was.
func ExampleDropout() {
	d := &nn.Dropout{P: 0.5}
	x := autograd.NoGrad(tensor.Ones(tensor.Float32, 1000))
	y := d.Forward(x).T()
	fmt.Println(tensor.Amax(y, 0).Item(), tensor.Amin(y, 0).Item())
	nn.Eval(d)
	fmt.Println(d.Forward(x).T().Sum())
	// Output:
	// 2 0
	// 1000
}

// Of each image whole channels are dropped.
func ExampleDropout2d() {
	d := &nn.Dropout2d{P: 0.5}
	y := d.Forward(autograd.NoGrad(tensor.Ones(tensor.Float32, 2, 3, 2, 2))).T()
	whole := true
	for n := range 2 {
		for c := range 3 {
			sum := y.Select(0, n).Select(0, c).Sum()
			whole = whole && (sum == 0 || sum == 8)
		}
	}
	fmt.Println(whole)
	// Output: true
}

func ExampleMaxPool2d() {
	y := nn.NewMaxPool2d(2).Forward(autograd.NoGrad(tensor.Arange(tensor.Float32, 0, 16, 1).Reshape(1, 1, 4, 4)))
	fmt.Println(y.T().ToNested())
	// Output: [[[[5 7] [13 15]]]]
}

func ExampleAvgPool2d() {
	y := nn.NewAvgPool2d(2).Forward(autograd.NoGrad(tensor.Arange(tensor.Float32, 0, 16, 1).Reshape(1, 1, 4, 4)))
	fmt.Println(y.T().ToNested())
	// Output: [[[[2.5 4.5] [10.5 12.5]]]]
}

// In eval mode it normalizes by what it has seen in training.
func ExampleBatchNorm2d() {
	b := nn.NewBatchNorm2d(1)
	b.Forward(autograd.Const(tensor.FromSlice([]float32{0, 4}, 2, 1, 1, 1)))
	fmt.Printf("%.1f %.1f\n", b.RunningMean.Item(), b.RunningVar.Item())
	nn.Eval(b)
	fmt.Printf("%.3f\n", b.Forward(autograd.NoGrad(tensor.FromSlice([]float32{0.2}, 1, 1, 1, 1))).T().Item())
	// Output:
	// 0.2 1.7
	// 0.000
}

func ExampleLayerNorm() {
	l := nn.NewLayerNorm(2)
	fmt.Printf("%.2f\n", tensor.Data[float32](l.Forward(autograd.NoGrad(tensor.FromSlice([]float32{1, 3}, 1, 2))).T()))
	// Output: [-1.00 1.00]
}

func ExampleTransformerEncoder() {
	e := &nn.TransformerEncoder{Norm: nn.NewLayerNorm(8)}
	for range 2 {
		e.Layers = append(e.Layers, nn.NewTransformerEncoderLayer(8, 2, 16, 0, nil))
	}
	fmt.Println(e.Forward(autograd.NoGrad(tensor.RandN(tensor.Float32, nil, 5, 1, 8))).Shape())
	// Output: [5 1 8]
}

// The second sequence has one element, so what stands behind it is seen by nobody.
func ExampleAttentionMask() {
	m := nn.NewMultiheadAttention(4, 1, nil)
	m.BatchFirst = true
	x := autograd.NoGrad(tensor.Ones(tensor.Float32, 2, 2, 4))
	_, w := m.AttendWeights(x, x, x, nn.AttentionMask{Padding: tensor.FromSlice([]bool{false, false, false,
		true}, 2, 2)})
	fmt.Println(w.T().ToNested())
	// Output: [[[0.5 0.5] [0.5 0.5]] [[1 0] [1 0]]]
}

func ExampleMSELoss() {
	x := autograd.NoGrad(tensor.FromSlice([]float32{1, 5}, 2))
	fmt.Println(nn.MSELoss{}.Of(x, tensor.FromSlice([]float32{2, 2}, 2)).T().Item())
	// Output: 5
}

func ExampleL1Loss() {
	x := autograd.NoGrad(tensor.FromSlice([]float32{1, 5}, 2))
	fmt.Println(nn.L1Loss{}.Of(x, tensor.FromSlice([]float32{2, 2}, 2)).T().Item())
	// Output: 2
}

func ExampleSmoothL1Loss() {
	x := autograd.NoGrad(tensor.FromSlice([]float32{1, 5}, 2))
	fmt.Println(nn.SmoothL1Loss{Beta: 2}.Of(x, tensor.FromSlice([]float32{2, 2}, 2)).T().Item())
	// Output: 1.125
}

func ExampleNLLLoss() {
	logp := autograd.NoGrad(tensor.FromSlice([]float32{-1, -2, -3, -4}, 2, 2))
	fmt.Println(nn.NLLLoss{}.Of(logp, tensor.FromSlice([]int64{0, 1}, 2)).T().Item())
	// Output: 2.5
}

// Two classes that are equally likely cost log 2, whatever the labels are smoothed to.
func ExampleCrossEntropyLoss() {
	logits := autograd.NoGrad(tensor.FromSlice([]float32{2, 2}, 1, 2))
	fmt.Printf("%.4f\n", nn.CrossEntropyLoss{Smoothing: 0.1}.Of(logits, tensor.FromSlice([]int64{1}, 1)).T().Item())
	// Output: 0.6931
}

func ExampleBCEWithLogitsLoss() {
	logits := autograd.NoGrad(tensor.FromSlice([]float32{0, 0}, 2))
	fmt.Printf("%.4f\n", nn.BCEWithLogitsLoss{}.Of(logits, tensor.FromSlice([]float32{1, 0}, 2)).T().Item())
	// Output: 0.6931
}

// A layer that drops nothing after Eval.
func ExampleMode() {
	drop := &nn.Dropout{P: 0.5}
	nn.Eval(drop)
	apply(drop, 1, 2, 3)
	// Output: 1.000 2.000 3.000
}

// A network of one's own is a struct; the names of its parameters are those of its fields.
func ExampleModule() {
	var net nn.Module = &struct{ Hidden, Out *nn.Linear }{nn.NewLinear(4, 8, nil), nn.NewLinear(8, 2, nil)}
	for name, p := range nn.Named(net) {
		fmt.Println(name, p.T.Shape())
	}
	// Output:
	// hidden.weight [8 4]
	// hidden.bias [8]
	// out.weight [2 8]
	// out.bias [2]
}
