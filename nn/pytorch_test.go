package nn_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	testutil.NoError(t, err)
	testutil.NoError(t, json.Unmarshal(b, v))
}

// recordedLayers are the layers of testdata/record.py.
var recordedLayers = map[string]func() nn.Layer{
	"Linear":    func() nn.Layer { return nn.NewLinear(6, 3, nil) },
	"Conv2d":    func() nn.Layer { return nn.NewConv2d(2, 3, 3, nil) },
	"MaxPool2d": func() nn.Layer { return nn.NewMaxPool2d(2) },
	"AvgPool2d": func() nn.Layer { return nn.NewAvgPool2d(2) },
	"AvgPool2d moved": func() nn.Layer {
		return &nn.AvgPool2d{Size: [2]int{3, 3}, Stride: [2]int{2, 2}, Padding: [2]int{1, 1}}
	},
	"BatchNorm2d":         func() nn.Layer { return nn.NewBatchNorm2d(2) },
	"LayerNorm":           func() nn.Layer { return nn.NewLayerNorm(6) },
	"LayerNorm of images": func() nn.Layer { return nn.NewLayerNorm(5, 4) },
	"Embedding":           func() nn.Layer { return nn.NewEmbedding(5, 3, nil) },
	"Embedding padded": func() nn.Layer {
		return nn.NewEmbeddingWith(5, 3, nil, nn.EmbeddingOptions{Padding: []int64{1}})
	},
	"ReLU":       func() nn.Layer { return nn.ReLU },
	"LeakyReLU":  func() nn.Layer { return nn.LeakyReLU(0.1) },
	"GELU":       func() nn.Layer { return nn.GELU },
	"SiLU":       func() nn.Layer { return nn.SiLU },
	"Tanh":       func() nn.Layer { return nn.Tanh },
	"Sigmoid":    func() nn.Layer { return nn.Sigmoid },
	"Softmax":    func() nn.Layer { return nn.Softmax },
	"LogSoftmax": func() nn.Layer { return nn.LogSoftmax },
}

type recordedLayer struct {
	Layer          string
	Shape          []int
	Y, DX, Eval    []float64
	Grads, Buffers map[string][]float64
	State          map[string][]int
}

// input returns what testdata/record.py gives to a layer.
func (r recordedLayer) input() *tensor.Tensor {
	switch len(r.Shape) {
	case 4:
		return values(5, 2, r.Shape...)
	case 2:
		if r.DX != nil {
			return values(6, 3, r.Shape...)
		}
	}
	return tensor.FromSlice([]int64{1, 4, 1, 0, 1, 3}, 2, 3)
}

type recordedLosses map[string][3]struct{ Y, DX []float64 }

func TestLayer_ComputesWhatPyTorchDoes(t *testing.T) {
	var r struct{ Layers []recordedLayer }
	readJSON(t, "testdata/layers.json", &r)
	if len(r.Layers) != len(recordedLayers) {
		t.Errorf("%d layers are recorded, %d are known", len(r.Layers), len(recordedLayers))
	}
	for _, c := range r.Layers {
		t.Run(c.Layer, func(t *testing.T) {
			m := recordedLayers[c.Layer]()
			seed := 0
			for p := range nn.Params(m) {
				seed++
				p.T.CopyFrom(values(seed, 1, p.T.Shape()...))
			}
			m.Forward(autograd.Const(c.input()))
			x := autograd.NewParam("x", c.input())
			in := autograd.Const(x.T)
			if c.DX != nil {
				in = x.Var()
			}
			y := m.Forward(in)
			y.BackwardWith(autograd.BackwardOptions{Gradient: values(77, 1, y.Shape()...)})
			closeTo(t, "output", y.T(), c.Y, 2e-6)
			if c.DX != nil {
				closeTo(t, "gradient of the input", x.Grad, c.DX, 2e-6)
			}
			for name, p := range nn.Named(m) {
				closeTo(t, "gradient of "+name, p.Grad, c.Grads[name], 2e-6)
			}
			for name, b := range nn.Buffers(m) {
				closeTo(t, name, b, c.Buffers[name], 2e-6)
			}
			shapes := map[string][]int{}
			for name, s := range nn.State(m) {
				shapes[name] = s.Shape()
			}
			if !maps.EqualFunc(shapes, c.State, slices.Equal) {
				t.Errorf("state %v, want %v", shapes, c.State)
			}
			nn.Eval(m)
			closeTo(t, "output in eval mode", m.Forward(autograd.NoGrad(c.input())).T(), c.Eval, 2e-6)
		})
	}
}

// closeTo compares numbers relative to themselves, or to 1 if they are smaller.
func closeTo(t *testing.T, what string, got *tensor.Tensor, want []float64, tolerance float64) {
	t.Helper()
	g := tensor.Data[float64](got.To(tensor.Float64).Contiguous())
	if !slices.EqualFunc(g, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) }) {
		t.Errorf("%s: %v, want %v", what, g, want)
	}
}

func TestLoss_IsThatOfPyTorch(t *testing.T) {
	var r struct{ Losses recordedLosses }
	readJSON(t, "testdata/layers.json", &r)
	classes, probabilities := tensor.FromSlice([]int64{3, 0, 5, 1}, 4), values(8, 0.5, 4, 6).AddScalarInPlace(0.5)
	ignoring := tensor.FromSlice([]int32{3, autograd.Ignored, 5, 1}, 4)
	weight := values(7, 0.5, 6).AddScalarInPlace(0.75)
	makers := map[string]func(r autograd.Reduction) (nn.Loss, *tensor.Tensor){
		"NLL": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.NLLLoss{Reduction: r}, classes
		},
		"CrossEntropy": func(r autograd.Reduction) (nn.Loss,
			*tensor.Tensor) {
			return nn.CrossEntropyLoss{Reduction: r}, classes
		},
		"NLL ignoring": func(r autograd.Reduction) (nn.Loss,
			*tensor.Tensor) {
			return nn.NLLLoss{Reduction: r}, ignoring
		},
		"NLL ignoring 5": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.NLLLoss{Ignore: []int64{5}, Reduction: r}, classes
		},
		"NLL weighted": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.NLLLoss{Weight: weight, Reduction: r}, ignoring
		},
		"CrossEntropy smoothed": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.CrossEntropyLoss{Smoothing: 0.2, Reduction: r}, ignoring
		},
		"CrossEntropy smoothed and weighted": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.CrossEntropyLoss{Weight: weight, Smoothing: 0.2, Reduction: r}, ignoring
		},
		"BCEWithLogits weighted": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.BCEWithLogitsLoss{Positive: weight, Reduction: r}, probabilities
		},
		"MSE": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.MSELoss{Reduction: r}, probabilities
		},
		"SmoothL1": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.SmoothL1Loss{Beta: 0.5, Reduction: r}, probabilities
		},
		"BCEWithLogits": func(r autograd.Reduction) (nn.Loss, *tensor.Tensor) {
			return nn.BCEWithLogitsLoss{Reduction: r}, probabilities
		},
	}
	if len(r.Losses) != len(makers) {
		t.Errorf("%d losses are recorded, %d are known", len(r.Losses), len(makers))
	}
	for name, cases := range r.Losses {
		for reduction, want := range cases {
			loss, target := makers[name](autograd.Reduction(reduction))
			x := autograd.NewParam("x", values(6, 3, 4, 6))
			y := loss.Of(x.Var(), target)
			y.BackwardWith(autograd.BackwardOptions{Gradient: values(77, 1, y.Shape()...)})
			closeTo(t, name, y.T(), want.Y, 2e-6)
			closeTo(t, name+" gradient", x.Grad, want.DX, 2e-6)
		}
	}
}

type recordedRun struct {
	DType, Optimizer   string
	Losses, Forward    []float64
	Gradients, Weights map[string][]float64
}

// summary is that of testdata/record.py: a tensor's norm, its product with known numbers, and eight
// of its elements.
func summary(x *tensor.Tensor) []float64 {
	v := tensor.Data[float64](x.To(tensor.Float64).Contiguous())
	var squares, product float64
	for i, e := range v {
		squares += e * e
		product += e * (float64((i*7919+99*104729)%1009)/504.5 - 1)
	}
	out := []float64{math.Sqrt(squares), product}
	for i := 0; i < len(v) && len(out) < 10; i += max(1, len(v)/7) {
		out = append(out, v[i])
	}
	return out
}

// TestLayer_TrainsAsInPyTorch takes 20 steps. In float32 both round in another order, so that an
// element that is almost 0 has hardly a digit in common: what is compared to 1e-5 are norms, and
// elements relative to the root of their mean square.
func TestLayer_TrainsAsInPyTorch(t *testing.T) {
	var r struct{ Runs []recordedRun }
	readJSON(t, "testdata/training.json", &r)
	if len(r.Runs) != 4 {
		t.Fatalf("%d runs are recorded", len(r.Runs))
	}
	for _, run := range r.Runs {
		t.Run(run.Optimizer+" "+run.DType, func(t *testing.T) {
			dt, err := tensor.ParseDType(run.DType)
			testutil.NoError(t, err)
			tolerance := map[tensor.DType]float64{tensor.Float32: 1e-5, tensor.Float64: 1e-11}[dt]
			run.check(t, dt, tolerance)
		})
	}
}

func (r recordedRun) check(t *testing.T, dt tensor.DType, tolerance float64) {
	net := NewMNISTNet(tensor.NewGenerator(1))
	nn.Eval(net)
	seed := 0
	for p := range nn.Params(net) {
		seed++
		scale := 0.1
		if p.T.Dims() > 1 {
			scale = 1 / math.Sqrt(float64(p.T.Numel()/p.T.Dim(0)))
		}
		p.T = exact(seed, scale, p.T.Shape()...).To(dt)
	}
	var o optim.Optimizer = optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.01, Momentum: 0.5})
	if r.Optimizer == "adam" {
		o = optim.NewAdam(nn.Params(net), optim.AdamOptions{LR: 1e-3})
	}
	s := autograd.NewScope()
	for k, want := range r.Losses {
		target := tensor.New(tensor.Int64, 16)
		for i := range 16 {
			tensor.SetAt(target, int64((k+3*i)%10), i)
		}
		o.ZeroGrad()
		y := net.Forward(s.Const(exact(100+k, 1, 16, 1, 28, 28).To(dt)))
		loss := nn.NLLLoss{}.Of(y, target)
		loss.Backward()
		if k == 0 {
			alike(t, "forward", y.T(), r.Forward, tolerance)
			for name, p := range nn.Named(net) {
				alike(t, "gradient of "+name, p.Grad, r.Gradients[name], tolerance)
			}
		}
		o.Step()
		if got := loss.Item(); !(math.Abs(got-want) <= tolerance*want) {
			t.Errorf("loss of step %d: %v, want %v", k, got, want)
		}
		s.Reset()
	}
	for name, p := range nn.Named(net) {
		alike(t, name, p.T, r.Weights[name], tolerance)
	}
}

// alike compares the summaries of tensors.
func alike(t *testing.T, what string, x *tensor.Tensor, want []float64, tolerance float64) {
	t.Helper()
	got, norm := summary(x), want[0]
	n := float64(x.Numel())
	for i, v := range got {
		scale := norm / math.Sqrt(n) // the root of the mean square
		switch i {
		case 0:
			scale = norm
		case 1:
			scale = norm // the known numbers' is about √(n/3): an error of all elements in step would be larger
		}
		if d := math.Abs(v - want[i]); !(d <= tolerance*max(scale, math.Abs(want[i]))) {
			t.Errorf("%s, number %d: %v, want %v: off by %.2g of %.3g", what, i, v, want[i], d/scale, scale)
		}
	}
}
