// Command dataservice trains with batches of three data hosts. It prints that the trainer has got
// every sample once, although one host is killed. Run: go run ./examples/dataservice
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/service"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

var key = []byte("a secret of 16 bytes or more")

var pixels = data.Compose(data.ToTensor, data.Normalize(datasets.MNISTMean, datasets.MNISTStd))

// host serves batches until it is stopped. All data hosts must have the same data set and options.
var host = shoal.Register("host", func(ctx context.Context, rank int, addrs *ipc.Sender[string]) error {
	loader := data.NewLoader(datasets.Digits(6000, 1),
		data.Options{BatchSize: 32, Shuffle: true, Seed: 1, Workers: 1, Transform: pixels})
	h, err := service.Listen(loader, "127.0.0.1:0", service.HostOptions{Key: key, Name: "6000 digits"})
	if err != nil {
		return err
	}
	defer h.Close()
	if err := addrs.Put(ctx, h.Addr()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	queue, err := ipc.NewQueue[string](3)
	if err != nil {
		return err
	}
	defer queue.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 3})
	defer g.Close()
	addrs, hosts := make([]string, 3), make([]*shoal.Process, 3)
	for i := range hosts {
		hosts[i] = host.Go(g, queue.Sender())
		if addrs[i], err = queue.Get(ctx); err != nil {
			return err
		}
	}
	return train(ctx, addrs, hosts[1])
}

// train trains for three epochs and kills a data host in the middle of one.
func train(ctx context.Context, addrs []string, one *shoal.Process) error {
	l, err := service.Dial(ctx, service.Options{Key: key}, addrs...)
	if err != nil {
		return err
	}
	defer l.Close()
	g, scope, loss, step := tensor.NewGenerator(1), autograd.NewScope(), float32(0), 0
	net := nn.NewSequential(nn.Flatten, nn.NewLinear(784, 64, g), nn.ReLU, nn.NewLinear(64, 10, g), nn.LogSoftmax)
	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: .05, Momentum: .5})
	for l.State().Epoch < 3 {
		for batch, err := range l.Batches(ctx) {
			if err != nil {
				return err
			}
			if step++; step == l.Len()/2 {
				one.Kill()
			}
			sgd.ZeroGrad()
			of := nn.NLLLoss{}.Of(net.Forward(scope.Const(batch[0])), batch[1])
			of.Backward()
			loss = tensor.At[float32](of.T())
			sgd.Step()
			scope.Reset()
			batch.Close()
		}
	}
	fmt.Println(l.Stats().Samples, "samples in 3 epochs of 6000; the loss is below 0.2:", loss < 0.2)
	return nil
}
