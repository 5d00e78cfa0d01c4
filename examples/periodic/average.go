package main

import (
	"context"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A state dict is sent through a pipe as references. It is copied only when it is loaded.
type state = map[string]*tensor.Tensor

var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

// averageStates receives the state of every worker and sends the mean back. A worker must load the
// mean before it sends its next state, so no state is overwritten while it is read.
func averageStates(ctx context.Context, net *nn.Sequential, conns []*ipc.PipeEnd[state, state]) error {
	var states []state
	for _, c := range conns {
		s, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		states = append(states, s)
	}
	if err := nn.Average(net, states...); err != nil {
		return err
	}
	for i, c := range conns {
		if err := c.Send(ctx, nn.State(net)); err != nil {
			return err
		}
		for _, t := range states[i] {
			t.Close()
		}
	}
	return nil
}

// countCorrect returns the number of correctly classified digits among 1000.
func countCorrect(ctx context.Context, net *nn.Sequential) (right float64) {
	for batch := range data.NewLoader(datasets.Digits(1000, 2),
		data.Options{BatchSize: 1000, Transform: pixels}).Batches(ctx) {
		guess := tensor.Argmax(net.Forward(autograd.NoGrad(batch[0])).T(), 1)
		right = tensor.Eq(guess, batch[1]).To(tensor.Float32).Sum()
	}
	return right
}
