// Command periodic trains replicas that synchronize periodically: after each round, all continue
// with the mean of their states.
//
//	go run ./examples/periodic
//
// It prints the number of test digits that are right after each round.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

const workers, rounds = 2, 5

type job struct {
	Digits *data.TensorDataset
	Net    *nn.Sequential
	Meet   *ipc.PipeEnd[state, state]
}

var train = shoal.Register("train", func(ctx context.Context, rank int, j job) error {
	defer j.Meet.Close()
	own, mine := nn.Clone(j.Net), data.Shard(data.Random(j.Digits.Len(), 1), rank, workers)
	loader := data.NewLoader(j.Digits, data.Options{BatchSize: 64, Sampler: mine, Transform: pixels})
	sgd := optim.NewSGD(nn.Params(own), optim.SGDOptions{LR: .05, Momentum: .5})
	for range rounds {
		for batch, err := range loader.Batches(ctx) {
			if err != nil {
				return err
			}
			sgd.ZeroGrad()
			nn.NLLLoss{}.Of(own.Forward(autograd.Const(batch[0])), batch[1]).Backward()
			sgd.Step()
			batch.Close()
		}
		if err := j.Meet.Send(ctx, nn.State(own)); err != nil { // push; fixed until the pull
			return err
		}
		mean, err := j.Meet.Recv(ctx) // pull
		if err != nil {
			return err
		}
		if err := nn.Load(own, mean); err != nil {
			return err
		}
	}
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	g, digits, group := tensor.NewGenerator(1), datasets.Digits(6000, 1),
		shoal.NewGroup(ctx, shoal.Options{Workers: workers})
	net := nn.NewSequential(nn.Flatten, nn.NewLinear(784, 64, g), nn.ReLU, nn.NewLinear(64, 10, g), nn.LogSoftmax)
	defer group.Close()
	var conns [workers]*ipc.PipeEnd[state, state]
	for i := range conns {
		ours, theirs, err := ipc.Pipe[state, state]()
		if err != nil {
			return err
		}
		defer ours.Close()
		train.Go(group, job{digits, net, theirs})
		theirs.Close()
		conns[i] = ours
	}
	for round := range rounds {
		if err := averageStates(ctx, net, conns[:]); err != nil {
			return errors.Join(group.Wait(), err)
		}
		fmt.Printf("round %d: %v of 1000 digits are right\n", round, countCorrect(ctx, net))
	}
	return group.Wait()
}
