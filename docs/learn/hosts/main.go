// Hosts is the program of lesson 9: the ranks of a job train one network, each on its part of every
// batch. How many they are, and on which machines, is told by what starts them.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/dist"
	_ "github.com/shoal-mp/shoal/dist/mpi" // the way to ranks on other machines
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

const batch = 64 // digits in a step, of all ranks together

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	group, err := dist.Init(ctx)
	if err != nil {
		return err
	}
	return errors.Join(train(ctx, group), group.Close())
}

func train(ctx context.Context, group *dist.Group) error {
	rank, size := group.Rank(), group.Size()
	net := nn.NewSequential(nn.Flatten, nn.NewLinear(784, 10, tensor.NewGenerator(uint64(rank))))
	model, err := dist.NewDistributedDataParallel(ctx, group, net, dist.DDPOptions{}) // of rank 0, for all
	if err != nil {
		return err
	}
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: .1})
	loader := data.NewLoader(datasets.Digits(1920, 1), data.Options{BatchSize: batch / size,
		Rank: rank, World: size, Transform: data.ToTensor})
	defer loader.Close()
	sum := tensor.New(tensor.Float32, 1)
	for digits, err := range loader.Batches(ctx) {
		if err != nil {
			return err
		}
		sgd.ZeroGrad()
		loss := nn.CrossEntropyLoss{}.Of(model.Forward(autograd.Const(digits[0])), digits[1])
		if err := model.Backward(ctx, loss); err != nil {
			return err
		}
		sgd.Step()
		sum.AddScalarInPlace(loss.Item())
		digits.Close()
	}
	if err := group.AllReduce(ctx, dist.Mean, sum); err != nil {
		return err
	}
	if rank == 0 {
		fmt.Printf("ranks: %d, steps: %d, digits in a step: %d, mean loss: %.2f\n", size, loader.Len(),
			size*(batch/size), sum.Item()/float64(loader.Len()))
	}
	return nil
}
