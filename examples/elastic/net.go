package main

import (
	"context"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

func newNet() *nn.Sequential {
	return nn.NewSequential(nn.Flatten, nn.NewLinear(784, 10, tensor.NewGenerator(1)), nn.LogSoftmax)
}

// flattenParams returns the parameters of a network as one slice.
func flattenParams(net *nn.Sequential) (all []float32) {
	for p := range nn.Params(net) {
		all = append(all, tensor.Data[float32](p.T)...)
	}
	return all
}

// set copies params, in the order of [flattenParams], to the parameters of a network.
func set(net *nn.Sequential, params []float32) {
	for p := range nn.Params(net) {
		params = params[copy(tensor.Data[float32](p.T), params):]
		p.T.Touch()
	}
}

// gradient returns the gradient of the loss for the 32 digits of a job, in the order of
// [flattenParams].
func gradient(ctx context.Context, params []float32, digits *data.TensorDataset, job int) (grad []float32, err error) {
	net, scope := newNet(), autograd.NewScope()
	defer scope.Reset()
	set(net, params)
	mine := digits.Narrow(job*32%digits.Len(), 32)
	for batch, err := range data.NewLoader(mine, data.Options{BatchSize: 32, Transform: pixels}).Batches(ctx) {
		if err != nil {
			return nil, err
		}
		nn.NLLLoss{}.Of(net.Forward(scope.Const(batch[0])), batch[1]).Backward()
		batch.Close()
	}
	for p := range nn.Params(net) {
		grad = append(grad, tensor.Data[float32](p.Grad)...)
	}
	return grad, nil
}

// countCorrect returns how many of 1000 test digits a network with params classifies correctly.
func countCorrect(ctx context.Context, params []float32) (n int, err error) {
	net := newNet()
	set(net, params)
	for batch, err := range data.NewLoader(datasets.Digits(1000, 2), data.Options{BatchSize: 1000,
		Transform: pixels}).Batches(ctx) {
		if err != nil {
			return 0, err
		}
		guess := tensor.Argmax(net.Forward(autograd.NoGrad(batch[0])).T(), 1)
		n += int(tensor.Eq(guess, batch[1]).To(tensor.Float32).Sum())
		batch.Close()
	}
	return n, nil
}
