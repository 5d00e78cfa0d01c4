// Torchloader is the lesson of samples from Go for a PyTorch script, train.py beside it:
//
//	go build -o loader ./examples/torchloader
//	python3 examples/torchloader/train.py ./loader [directory of MNIST]
//
// PyTorch starts the program as the workers of its DataLoader. It finds the data set by the name
// that the script gives, reads, gathers and normalizes the samples, and PyTorch gets batches in
// memory that both share.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

func main() {
	torch.Child{Datasets: map[string]torch.OpenDataset{"digits": openDigits}}.Main()
	fmt.Fprintln(os.Stderr,
		"PyTorch starts this program: python3 examples/torchloader/train.py PROGRAM [directory of MNIST]")
	os.Exit(2)
}

// openDigits opens MNIST, or drawn digits where the script names no directory.
func openDigits(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		N    int     `torch:"n"`
		Root *string `torch:"root"`
	}
	if err := w.Keywords(&args); err != nil {
		return nil, err
	}
	if args.N < 1 {
		return nil, fmt.Errorf("n, the number of digits, is %d", args.N)
	}
	if args.Root == nil {
		return ready{datasets.Digits(args.N, 1)}, nil
	}
	set, err := datasets.MNIST(*args.Root, true)
	if err != nil {
		return nil, err
	}
	return ready{set}, nil
}

// A ready data set has images of float32 with a channel, from 0 to 1.
type ready struct{ *data.TensorDataset }

// Get returns one image and its label.
func (r ready) Get(ctx context.Context, i int) (data.Sample, error) {
	s, err := r.TensorDataset.Get(ctx, i)
	if err != nil {
		return nil, err
	}
	return data.Sample{data.ToTensor.Apply(nil, s[0]), s[1]}, nil
}

// Gather writes a batch.
func (r ready) Gather(ctx context.Context, indices []int, into data.Batch) error {
	raw := data.Batch{tensor.New(tensor.Uint8, len(indices), 28, 28), into[1]}
	if err := r.TensorDataset.Gather(ctx, indices, raw); err != nil {
		return err
	}
	data.ToTensor.Apply(into[0], raw[0])
	return nil
}
