// Command replicas shows the difference between shared and private state: two processes fit their
// own weights to one shared input, each for different outputs. With private gradients, each finds
// the weights for its outputs; with reduced gradients, both find the best weights for all. The
// parent's weights stay unchanged.
//
//	go run ./examples/replicas
//
// It prints the weights of the parent and of both workers in each mode.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

type job struct {
	Name    string
	Net     *nn.Linear // the parent's
	Input   *tensor.Tensor
	Group   *dist.Group    // nil means no reduction
	Weights *tensor.Tensor // one row for the result of each worker
}

var fit = shoal.Register("fit", func(ctx context.Context, rank int, j job) error {
	if j.Group != nil {
		defer j.Group.Close()
		if err := j.Group.Join(rank); err != nil {
			return err
		}
	}
	net := nn.Clone(j.Net) // without it they would share weights, as in Hogwild
	truth := tensor.FromSlice([]float32{float32(2*rank + 1), float32(2*rank + 2)}, 2, 1)
	output := autograd.Const(tensor.MatMul(j.Input, truth))
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: .1})
	for range 200 {
		sgd.ZeroGrad()
		autograd.MSELoss(net.Forward(autograd.Const(j.Input)), output, autograd.ByMean).Backward()
		if j.Group != nil {
			if err := j.Group.AverageGrads(ctx, nn.Params(net)); err != nil {
				return err
			}
		}
		sgd.Step()
	}
	j.Weights.Narrow(0, rank, 1).CopyFrom(net.Weight.T)
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	g := tensor.NewGenerator(1)
	net, input := nn.NewLinear(2, 1, g), tensor.RandN(tensor.Float32, g, 64, 2)
	net.Weight.T.Zero()
	group, err := dist.NewGroup(2)
	if err != nil {
		return err
	}
	defer group.Close()
	for _, j := range []job{{"private", net, input, nil, ones()}, {"reduced", net, input, group, ones()}} {
		if err := fit.Spawn(ctx, 2, j); err != nil {
			return err
		}
		w := tensor.Data[float32](j.Weights)
		fmt.Printf("%s: parent %.2f, worker 0 %.2f, worker 1 %.2f\n", j.Name,
			tensor.Data[float32](net.Weight.T), w[:2], w[2:])
	}
	return nil
}

func ones() *tensor.Tensor { return tensor.Full(tensor.Float32, 1, 2, 2) }
