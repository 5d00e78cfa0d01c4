// Command allreduce trains equal replicas, as PyTorch's DistributedDataParallel does: two processes
// each compute the gradients for half of every batch, average them with an all-reduce and apply the
// same step.
//
//	go run ./examples/allreduce
//
// It prints that the replicas are equal and the number of test digits that are right.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

type job struct {
	Group        *dist.Group
	Digits, Test *data.TensorDataset
}

var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

var train = shoal.Register("train", func(ctx context.Context, rank int, j job) error {
	defer j.Group.Close()
	if err := j.Group.Join(rank); err != nil {
		return err
	}
	g := tensor.NewGenerator(uint64(rank)) // overwritten by rank 0's weights
	last := nn.NewLinear(64, 10, g)
	net := nn.NewSequential(nn.Flatten, nn.NewLinear(784, 64, g), nn.ReLU, last, nn.LogSoftmax)
	if err := j.Group.BroadcastParams(ctx, 0, nn.Params(net)); err != nil {
		return err
	}
	mine := data.Shard(data.Random(j.Digits.Len(), 1), rank, j.Group.Size())
	loader, scope := data.NewLoader(j.Digits, data.Options{BatchSize: 32, Sampler: mine, Transform: pixels}),
		autograd.NewScope()
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: .05, Momentum: .5})
	for range 3 {
		for batch, err := range loader.Batches(ctx) {
			if err != nil {
				return err
			}
			sgd.ZeroGrad()
			nn.NLLLoss{}.Of(net.Forward(scope.Const(batch[0])), batch[1]).Backward()
			if err := j.Group.AverageGrads(ctx, nn.Params(net)); err != nil {
				return err
			}
			sgd.Step()
			scope.Reset()
			batch.Close()
		}
	}
	all := tensor.New(tensor.Float32, 2, 10, 64) // the weights of a layer in both ranks
	if err := j.Group.AllGather(ctx, all, last.Weight.T); err != nil || rank != 0 {
		return err
	}
	fmt.Println("the replicas are equal:", tensor.Equal(all.Select(0, 0), all.Select(0, 1)))
	for batch, err := range data.NewLoader(j.Test, data.Options{BatchSize: 1000, Transform: pixels}).Batches(ctx) {
		if err != nil {
			return err
		}
		guess := tensor.Argmax(net.Forward(autograd.NoGrad(batch[0])).T(), 1)
		fmt.Println(tensor.Eq(guess, batch[1]).To(tensor.Float32).Sum(), "of 1000 digits are right")
	}
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	group, err := dist.NewGroup(2)
	if err != nil {
		return err
	}
	defer group.Close()
	return train.Spawn(ctx, 2, job{group, datasets.Digits(6000, 1), datasets.Digits(1000, 2)})
}
