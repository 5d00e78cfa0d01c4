// Command dataparallel trains one network with several devices, as PyTorch's nn.DataParallel does:
// two processes each compute the gradients for half of every batch. Only the computation of the
// loss differs from training in a single process.
//
//	go run ./examples/dataparallel
//
// It prints the loss of each epoch and the number of test digits that are right.
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

type net struct{ Hidden, Out *nn.Linear }

func (n *net) Forward(x *autograd.Var) *autograd.Var {
	return autograd.LogSoftmax(n.Out.Forward(autograd.ReLU(n.Hidden.Forward(autograd.Flatten(x)))), -1)
}

var loss = dist.RegisterLoss("loss", func(s *autograd.Scope, n *net, batch []*tensor.Tensor) *autograd.Var {
	return nn.NLLLoss{}.Of(n.Forward(s.Const(batch[0])), batch[1])
})

// options configures both loaders.
var options = data.Options{BatchSize: 64, Shuffle: true,
	Transform: data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))}

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	g := tensor.NewGenerator(1)
	n := &net{nn.NewLinear(784, 64, g), nn.NewLinear(64, 10, g)}
	parallel, err := dist.NewDataParallel(ctx, loss, n, dist.DataParallelOptions{Process: shoal.Options{Workers: 2}})
	if err != nil {
		return err
	}
	defer parallel.Close()
	loader, sgd := data.NewLoader(datasets.Digits(6000, 1), options),
		optim.NewSGD(nn.Params(n), optim.SGDOptions{LR: .05, Momentum: .5})
	for epoch := range 3 {
		var sum float64
		for batch, err := range loader.Batches(ctx) {
			if err != nil {
				return err
			}
			sgd.ZeroGrad()
			l, err := parallel.Backward(ctx, batch...)
			if err != nil {
				return err
			}
			sgd.Step()
			batch.Close()
			sum += l / float64(loader.Len())
		}
		fmt.Printf("epoch %d: loss %.2f\n", epoch, sum)
	}
	right, test := 0., datasets.Digits(1000, 2)
	for batch, err := range data.NewLoader(test, options).Batches(ctx) {
		if err != nil {
			return err
		}
		guess := tensor.Argmax(n.Forward(autograd.NoGrad(batch[0])).T(), 1)
		right += tensor.Eq(guess, batch[1]).To(tensor.Float32).Sum()
	}
	fmt.Printf("%v of %d digits are right\n", right, test.Len())
	return nil
}
