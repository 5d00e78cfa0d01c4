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

// A state dict goes through a queue as references: nothing is copied before it is loaded.
type state = map[string]*tensor.Tensor

var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

// average gets the state of every worker, and gives all of them the mean. None pushes its next one
// before it has loaded that, so nothing is overwritten that somebody reads.
func average(ctx context.Context, net *nn.Sequential, conns []*ipc.PipeEnd[state, state]) error {
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

// score returns how many of 1000 digits a network gets right.
func score(ctx context.Context, net *nn.Sequential) (right float64) {
	for batch := range data.NewLoader(datasets.Digits(1000, 2),
		data.Options{BatchSize: 1000, Transform: pixels}).Batches(ctx) {
		guess := tensor.Argmax(net.Forward(autograd.NoGrad(batch[0])).T(), 1)
		right = tensor.Eq(guess, batch[1]).To(tensor.Float32).Sum()
	}
	return right
}
