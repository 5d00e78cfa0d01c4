// Command hogwild trains without locks: two processes update one network in shared memory and never
// wait for each other. "shoal hogwild" is the full version with options.
//
//	go run ./examples/hogwild
//
// It prints the number of test digits that are right.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

type net struct{ Hidden, Out *nn.Linear }

func (n *net) Forward(x *autograd.Var) *autograd.Var {
	return autograd.LogSoftmax(n.Out.Forward(autograd.ReLU(n.Hidden.Forward(autograd.Flatten(x)))), -1)
}

type job struct {
	Net    *net
	Digits *data.TensorDataset
}

// options configures both loaders.
var options = data.Options{BatchSize: 64, Shuffle: true,
	Transform: data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))}

var train = shoal.Register("train", func(ctx context.Context, rank int, j job) error {
	o := options
	o.Seed = uint64(rank)
	loader, scope := data.NewLoader(j.Digits, o), autograd.NewScope()
	sgd := optim.NewSGD(nn.Params(j.Net), optim.SGDOptions{LR: .03, Momentum: .5})
	for range 2 {
		for batch, err := range loader.Batches(ctx) {
			if err != nil {
				return err
			}
			sgd.ZeroGrad()
			nn.NLLLoss{}.Of(j.Net.Forward(scope.Const(batch[0])), batch[1]).Backward()
			sgd.Step()
			scope.Reset()
			batch.Close()
		}
	}
	return loader.Close()
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	g := tensor.NewGenerator(1)
	j := job{&net{nn.NewLinear(784, 64, g), nn.NewLinear(64, 10, g)}, datasets.Digits(6000, 1)}
	if err := train.Spawn(ctx, 2, j); err != nil {
		return err
	}
	right, test := 0., datasets.Digits(1000, 2)
	for batch, err := range data.NewLoader(test, options).Batches(ctx) {
		if err != nil {
			return err
		}
		guess := tensor.Argmax(j.Net.Forward(autograd.NoGrad(batch[0])).T(), 1)
		right += tensor.Eq(guess, batch[1]).To(tensor.Float32).Sum()
	}
	fmt.Printf("2 processes trained one network: %v of %d digits are right\n", right, test.Len())
	return nil
}
