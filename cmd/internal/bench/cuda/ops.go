package cuda

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cmd/internal/bench"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// Ops measures tensor operations and training steps on a GPU. It requires a device.
var Ops = bench.NewSuite("cuda_ops",
	"operations and training steps on a GPU", "torch_cuda_ops.py", 5, operationRows)

// An operation is repeated, and the device is synchronized after the last repetition. The peer's
// script must define it under the same name with the same shapes.
type operation struct {
	name   string
	rounds int
	do     func()
}

func operationRows(_ context.Context, scale func(int) int) (cases []bench.Case, end func() error, err error) {
	dev, err := cuda.Current()
	if err != nil {
		return nil, nil, err
	}
	n := scale(4096)
	var ops []operation
	if err := tensor.Catch(func() { ops = append(listOperations(dev, n), trainingOperations(dev, n)...) }); err != nil {
		return nil, nil, err
	}
	for _, o := range ops {
		rounds := scale(o.rounds)
		cases = append(cases, bench.Case{
			Name: o.name, Unit: bench.Nanoseconds, Target: torchRatioTarget,
			Ours: newProbe(func(_ context.Context, rounds int) (err error) {
				err = tensor.Catch(func() {
					for range rounds {
						o.do()
					}
				})
				return errors.Join(err, dev.Synchronize())
			}, rounds),
			Peer: bench.AskPeer(o.name, n, rounds),
		})
	}
	return cases, tensor.EmptyCache, nil
}

func torchRatioTarget(r bench.Result, _ []bench.Result) (string, bool) {
	if r.Peer == "" {
		return "", false
	}
	return "≥ 0.83 × peer", r.RatioToPeer >= 1/1.2
}

// copyTo returns a copy of a tensor on a device, which the caller must close or leave to the
// garbage collector. It must be called within [tensor.Catch], because it panics on an error.
func copyTo(dev *cuda.Device, t *tensor.Tensor) *tensor.Tensor {
	return must(t.ToDevice(dev))
}

// must returns t, or panics if err is not nil. It must be called within [tensor.Catch].
func must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return t
}

// listOperations returns operations on n×n matrices and on small tensors, and creates their
// operands on dev. It must be called within [tensor.Catch], and so must the operations.
func listOperations(dev *cuda.Device, n int) []operation {
	g := tensor.NewGenerator(1)
	host := tensor.RandN(tensor.Float32, g, n, n)
	normal := func(shape ...int) *tensor.Tensor { return copyTo(dev, tensor.RandN(tensor.Float32, g, shape...)) }
	x, y := copyTo(dev, host), normal(n, n)
	few, few2 := normal(1000), normal(1000)
	half, half2 := x.To(tensor.BFloat16), y.To(tensor.BFloat16)
	row := normal(n)
	places := copyTo(dev, tensor.RandInt(g, 0, n, n))
	classes := copyTo(dev, tensor.RandInt(g, 0, n, n))
	everywhere := copyTo(dev, tensor.RandInt(g, 0, n, n, n))
	positive := tensor.Exp(x)
	larger := tensor.Gt(x, y)
	small, small2 := normal(256, 256), normal(256, 256)
	d := max(n/32, 8)
	batch, batch2 := normal(64, d, 64), normal(64, 64, d)
	ones := must(tensor.On(dev).Ones(tensor.Float32, n))
	two := tensor.Scalar(tensor.Float32, 2)
	closed := func(f func() *tensor.Tensor) func() { return func() { f().Close() } }
	s := autograd.NewScope()
	scoped := func(f func(x *autograd.Var) *autograd.Var) func() {
		return func() { f(s.NoGrad(x)); s.Reset() }
	}
	return []operation{
		{"add", 50, closed(func() *tensor.Tensor { return tensor.Add(x, y) })},
		{"add_row", 50, closed(func() *tensor.Tensor { return tensor.Add(x, row) })},
		{"add_few", 2000, closed(func() *tensor.Tensor { return tensor.Add(few, few2) })},
		{"add_few_in_place", 2000, func() { few.AddInPlace(few2) }},
		{"add_bf16", 50, closed(func() *tensor.Tensor { return tensor.Add(half, half2) })},
		{"add_in_place", 50, func() { y.AddInPlace(x) }},
		{"mul_scalar", 50, closed(func() *tensor.Tensor { return tensor.Mul(x, two) })},
		{"exp", 50, closed(func() *tensor.Tensor { return tensor.Exp(x) })},
		{"log", 50, closed(func() *tensor.Tensor { return tensor.Log(positive) })},
		{"sin", 50, closed(func() *tensor.Tensor { return tensor.Sin(x) })},
		{"tanh", 50, closed(func() *tensor.Tensor { return tensor.Tanh(x) })},
		{"gelu", 50, scoped(autograd.GELU)},
		{"relu", 50, scoped(autograd.ReLU)},
		{"where", 50, closed(func() *tensor.Tensor { return tensor.Where(larger, x, y) })},
		{"gt", 50, closed(func() *tensor.Tensor { return tensor.Gt(x, y) })},
		{"to_bf16", 50, closed(func() *tensor.Tensor { return x.To(tensor.BFloat16) })},
		{"sum", 50, closed(func() *tensor.Tensor { return tensor.Sum(x) })},
		{"sum_0", 50, closed(func() *tensor.Tensor { return tensor.Sum(x, 0) })},
		{"sum_1", 50, closed(func() *tensor.Tensor { return tensor.Sum(x, 1) })},
		{"amax_1", 50, closed(func() *tensor.Tensor { return tensor.Amax(x, 1) })},
		{"argmax_1", 50, closed(func() *tensor.Tensor { return tensor.Argmax(x, 1) })},
		{"softmax", 20, scoped(func(x *autograd.Var) *autograd.Var { return autograd.Softmax(x, 1) })},
		{"log_softmax", 20, scoped(func(x *autograd.Var) *autograd.Var { return autograd.LogSoftmax(x, 1) })},
		{"layer_norm", 20, scoped(func(x *autograd.Var) *autograd.Var {
			return autograd.LayerNorm(x, []int{n}, s.NoGrad(ones), s.NoGrad(row), 1e-5)
		})},
		{"cross_entropy", 20, scoped(func(x *autograd.Var) *autograd.Var {
			return autograd.CrossEntropy(x, classes, autograd.Classification{})
		})},
		{"t_clone", 50, closed(func() *tensor.Tensor { return x.T().Clone() })},
		{"cat", 20, closed(func() *tensor.Tensor { return tensor.Cat(0, x, y) })},
		{"index_select", 50, closed(func() *tensor.Tensor { return tensor.IndexSelect(x, 0, places) })},
		{"gather_1", 20, closed(func() *tensor.Tensor { return tensor.Gather(x, 1, everywhere) })},
		{"matmul_256", 500, closed(func() *tensor.Tensor { return tensor.MatMul(small, small2) })},
		{"bmm", 200, closed(func() *tensor.Tensor { return tensor.BMM(batch, batch2) })},
		{"randn", 20, closed(func() *tensor.Tensor {
			return must(tensor.On(dev).RandN(tensor.Float32, g, n, n))
		})},
		{"rand", 20, closed(func() *tensor.Tensor {
			return must(tensor.On(dev).Rand(tensor.Float32, g, n, n))
		})},
		{"dropout", 20, scoped(func(x *autograd.Var) *autograd.Var { return autograd.Dropout(x, 0.5, g, true) })},
		{"item", 500, func() { few.Narrow(0, 0, 1).Item() }},
		{"to_host", 3, closed(func() *tensor.Tensor { return must(x.CPU()) })},
		{"from_host", 3, closed(func() *tensor.Tensor { return copyTo(dev, host) })},
	}
}

// trainingStep moves net to dev and returns a function that performs one training step on the batch
// in: it computes the gradients of the loss and applies SGD. in must be on dev already. It panics
// if net cannot be moved.
func trainingStep(dev *cuda.Device, net nn.Layer, loss func(y *autograd.Var) *autograd.Var, in *tensor.Tensor) func() {
	if err := nn.To(net, dev); err != nil {
		panic(err)
	}
	s, sgd := autograd.NewScope(), optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.001, Momentum: 0.9})
	return func() {
		sgd.ZeroGrad()
		loss(net.Forward(s.Const(in))).Backward()
		sgd.Step()
		s.Reset()
	}
}

// trainingOperations returns training steps of small networks of typical sizes. A batch has n/4
// images, at least 2, or n/32 sequences, at least 4, for the encoder. It must be called within
// [tensor.Catch], and so must the operations.
func trainingOperations(dev *cuda.Device, n int) []operation {
	g := tensor.NewGenerator(1)
	samples := max(n/4, 2)
	labels := copyTo(dev, tensor.RandInt(g, 0, 10, samples))
	classify := func(y *autograd.Var) *autograd.Var {
		return autograd.CrossEntropy(y, labels, autograd.Classification{})
	}
	images := copyTo(dev, tensor.RandN(tensor.Float32, g, samples, 1, 28, 28))
	perceptron := nn.NewSequential(nn.Flatten, nn.NewLinear(28*28, 512, g), nn.ReLU, nn.NewLinear(512, 512, g), nn.ReLU,
		nn.NewLinear(512, 10, g))
	convolutions := nn.NewSequential(nn.NewConv2d(1, 32, 3, g), nn.ReLU, nn.NewConv2d(32, 64, 3, g), nn.ReLU,
		nn.NewMaxPool2d(2), nn.Flatten, nn.NewLinear(64*12*12, 128, g), nn.ReLU, nn.NewLinear(128, 10, g))
	encoder := nn.NewTransformerEncoderLayer(256, 4, 1024, 0, g)
	tokens := copyTo(dev, tensor.RandN(tensor.Float32, g, max(n/32, 4), 8, 256))
	return []operation{
		{"step_perceptron", 50, trainingStep(dev, perceptron, classify, images)},
		{"step_convolutions", 10, trainingStep(dev, convolutions, classify, images)},
		{"step_encoder", 20,
			trainingStep(dev, encoder, func(y *autograd.Var) *autograd.Var { return autograd.Mean(y) }, tokens)},
	}
}
