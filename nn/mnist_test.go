package nn_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// MNISTNet is the network of PyTorch's Hogwild example.
type MNISTNet struct {
	Conv1, Conv2 *nn.Conv2d
	Conv2Drop    *nn.Dropout2d
	FC1          *nn.Linear
	Drop         *nn.Dropout
	FC2          *nn.Linear
}

func NewMNISTNet(g *tensor.Generator) *MNISTNet {
	return &MNISTNet{
		Conv1: nn.NewConv2d(1, 10, 5, g), Conv2: nn.NewConv2d(10, 20, 5, g), Conv2Drop: &nn.Dropout2d{P: 0.5},
		FC1: nn.NewLinear(320, 50, g), Drop: &nn.Dropout{P: 0.5}, FC2: nn.NewLinear(50, 10, g),
	}
}

// Forward takes x (N, 1, 28, 28) and returns log-probabilities (N, 10).
func (n *MNISTNet) Forward(x *autograd.Var) *autograd.Var {
	pool := autograd.Window{Size: [2]int{2, 2}}
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv1.Forward(x), pool))
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv2Drop.Forward(n.Conv2.Forward(x)), pool))
	x = n.Drop.Forward(autograd.ReLU(n.FC1.Forward(autograd.Flatten(x))))
	return autograd.LogSoftmax(n.FC2.Forward(x), -1)
}

// values returns the numbers that testdata/record.py calls values.
func values(seed int, scale float64, shape ...int) *tensor.Tensor {
	return exact(seed, scale, shape...).To(tensor.Float32)
}

// exact is values in float64.
func exact(seed int, scale float64, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, shape...)
	for i, d := 0, tensor.Data[float64](t); i < len(d); i++ {
		d[i] = (float64((i*7919+seed*104729)%1009)/504.5 - 1) * scale
	}
	return t
}

func TestLayer_OfMNISTComputesWhatPyTorchDoes(t *testing.T) {
	net := NewMNISTNet(tensor.NewGenerator(1))
	nn.Eval(net)
	seed := 0
	for p := range nn.Params(net) {
		seed++
		scale := 0.1
		if p.T.Dims() > 1 {
			scale = 2 / math.Sqrt(float64(p.T.Numel()/p.T.Dim(0)))
		}
		p.T.CopyFrom(values(seed, scale, p.T.Shape()...))
	}
	y := net.Forward(autograd.Const(values(9, 1, 8, 1, 28, 28)))
	loss := nn.NLLLoss{}.Of(y, tensor.FromSlice([]int64{3, 1, 4, 1, 5, 9, 2, 6}, 8))
	loss.Backward()

	want := readFloats(t, "testdata/mnist_net.f32")
	compare := func(what string, got *tensor.Tensor) {
		for i, v := range tensor.Data[float32](got.Contiguous()) {
			if d := math.Abs(float64(v - want[i])); !(d <= 2e-6+1e-4*math.Abs(float64(want[i]))) {
				t.Fatalf("%s, element %d: %v, PyTorch has %v", what, i, v, want[i])
			}
		}
		want = want[got.Numel():]
	}
	compare("log-probabilities", y.T())
	compare("loss", loss.T())
	for name, p := range nn.Named(net) {
		compare("gradient of "+name, p.Grad)
	}
	if len(want) != 0 {
		t.Errorf("%d recorded numbers were not compared", len(want))
	}
}

func readFloats(t *testing.T, path string) []float32 {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func TestState_HasTheNamesOfPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/mnist_state.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]int
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	state := nn.State(NewMNISTNet(nil))
	if len(state) != len(want) {
		t.Errorf("%d parameters, PyTorch has %d", len(state), len(want))
	}
	for name, shape := range want {
		if state[name] == nil || !slices.Equal(state[name].Shape(), shape) {
			t.Errorf("%s: %v, want shape %v", name, state[name], shape)
		}
	}
}

func TestLayer_LearnsABatchByHeart(t *testing.T) {
	g := tensor.NewGenerator(3)
	net := NewMNISTNet(g)
	net.Drop.Generator, net.Conv2Drop.Generator = g, g
	x, target := tensor.RandN(tensor.Float32, g, 16, 1, 28, 28), tensor.RandInt(g, 0, 10, 16)
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.05, Momentum: 0.5})
	s := autograd.NewScope()
	for range 150 {
		sgd.ZeroGrad()
		nn.NLLLoss{}.Of(net.Forward(s.Const(x)), target).Backward()
		sgd.Step()
		s.Reset()
	}
	nn.Eval(net)
	logp := net.Forward(autograd.NoGrad(x))
	if got := tensor.Argmax(logp.T(), 1); !tensor.Equal(got, target) {
		t.Errorf("predicted %v, want %v (loss %v)", got, target, nn.NLLLoss{}.Of(logp, target).Item())
	}
}
