// Command devices assigns a device to each rank: workers compute on the GPUs in turn, or on the CPU
// if there is none, with a model from a file and batches from their own loader. Then a large tensor
// is sent from a device through a queue to another process, which maps the same memory. That
// process sends a host copy and the tensor back through a pipe. Finally the tensor is copied to the
// next device directly.
//
//	go run ./examples/devices
//
// It prints the report of each worker, and whether the tensor came back unchanged and in the same
// memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// A job is the argument of a worker: the model file and the queue for its report.
type job struct {
	Model string
	Done  *ipc.Sender[string]
}

var work = shoal.Register("work", func(ctx context.Context, rank int, j job) error {
	dev, err := cuda.ForRank(rank)
	if err != nil {
		return err
	}
	model, err := load(j.Model, dev)
	if err != nil {
		return err
	}
	defer nn.Close(model)
	loader := data.NewLoader(datasets.Digits(100, 1), data.Options{BatchSize: 32, Transform: data.ToTensor})
	defer loader.Close()
	scope, seen, sum := autograd.NewScope(), 0, 0.0
	for batch, err := range loader.Batches(ctx) {
		if err != nil {
			return err
		}
		x, err := batch[0].ToDevice(dev)
		if err != nil {
			return err
		}
		y := model.Forward(autograd.Flatten(scope.NoGrad(x)))
		seen, sum = seen+x.Dim(0), sum+y.T().Sum()
		scope.Reset()
		if err := errors.Join(x.Close(), batch.Close()); err != nil {
			return err
		}
	}
	return j.Done.Put(ctx, fmt.Sprintf("rank %d on %v: %d digits make %.2f", rank, tensor.Place{Device: dev},
		seen, sum))
})

// newModel returns an untrained classifier for digits.
func newModel() *nn.Linear { return nn.NewLinear(28*28, 10, tensor.NewGenerator(1)) }

// load returns a model on dev with the parameters in the file at path. The caller must close it
// with [nn.Close].
func load(path string, dev tensor.Device) (*nn.Linear, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	state, err := f.Tensors()
	if err != nil {
		return nil, err
	}
	model := newModel()
	return model, errors.Join(nn.To(model, dev), nn.Load(model, state))
}

// A route is the connection to the other process: tensors arrive through a queue and return through
// a pipe.
type route struct {
	In   *ipc.Receiver[*tensor.Tensor]
	Back *ipc.PipeEnd[*tensor.Tensor, *tensor.Tensor]
}

var toHost = shoal.Register("toHost", func(ctx context.Context, _ int, r route) error {
	defer r.Back.Close()
	x, err := r.In.Get(ctx)
	if err != nil {
		return err
	}
	defer x.Close()
	h, err := x.CPU()
	if err != nil {
		return err
	}
	defer h.Close()
	return errors.Join(r.Back.Send(ctx, h), r.Back.Send(ctx, x))
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	if err := cuda.Available(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return errors.Join(runRanks(ctx), roundTrip(ctx))
}

// runRanks runs the workers, one for each rank, and then prints their reports.
func runRanks(ctx context.Context) error {
	const workers = 4
	dir, err := os.MkdirTemp("", "devices-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	model := filepath.Join(dir, "model.safetensors")
	if err := safetensors.Save(model, nn.State(newModel())); err != nil {
		return err
	}
	done, err := ipc.NewQueue[string](workers)
	if err != nil {
		return err
	}
	defer done.Close()
	if err := work.Spawn(ctx, workers, job{model, done.Sender()}); err != nil {
		return err
	}
	for range workers {
		said, err := done.Get(ctx)
		if err != nil {
			return err
		}
		fmt.Println(said)
	}
	return nil
}

// roundTrip sends a tensor on one device through another process and other devices, and prints
// whether it came back unchanged.
func roundTrip(ctx context.Context) error {
	x := tensor.Arange(tensor.Float32, 0, 1e6, 1).View(1000, 1000)
	first, err := cuda.ForRank(0)
	if err != nil {
		return err
	}
	second, err := cuda.ForRank(1)
	if err != nil {
		return err
	}
	near, err := x.ToDevice(first)
	if err != nil {
		return err
	}
	defer near.Close()
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	if err != nil {
		return err
	}
	defer q.Close()
	here, there, err := ipc.Pipe[*tensor.Tensor, *tensor.Tensor]()
	if err != nil {
		return err
	}
	defer here.Close()
	g, err := toHost.Start(ctx, 1, route{q.Receiver(), there}, shoal.Options{})
	if err != nil {
		return errors.Join(err, there.Close())
	}
	there.Close()
	if err := q.Put(ctx, near); err != nil {
		return err
	}
	host, err := here.Recv(ctx)
	if err != nil {
		return errors.Join(err, g.Wait())
	}
	defer host.Close()
	back, err := here.Recv(ctx)
	if err != nil {
		return errors.Join(err, g.Wait())
	}
	defer back.Close()
	next, err := host.ToDevice(second)
	if err != nil {
		return err
	}
	defer next.Close()
	last, err := next.ToDevice(first)
	if err != nil {
		return err
	}
	defer last.Close()
	got, err := last.CPU()
	if err != nil {
		return err
	}
	defer got.Close()
	places := []any{tensor.Place{Device: near.Device()}, tensor.Place{Device: host.Device()},
		tensor.Place{Device: next.Device()}, tensor.Place{Device: last.Device()}}
	fmt.Printf("a million numbers went from %v by %v and %v to %v, all as they were: %v\n",
		append(places, tensor.Equal(got, x))...)
	fmt.Printf("by queue and pipe they stayed the same memory on %v: %v\n",
		tensor.Place{Device: back.Device()}, back.SameStorage(near))
	return g.Wait()
}
