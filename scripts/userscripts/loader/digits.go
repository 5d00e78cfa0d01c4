package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// digits are some of the images in a file of numpy, as float32 from 0 to 1 with a channel, and
// their labels.
type digits struct {
	*data.TensorDataset
	first, last int
}

func openDigits(_ context.Context, w torch.Worker) (data.Dataset, error) {
	var args struct {
		Root  string `torch:"root"`
		First int    `torch:"first"`
		Last  int    `torch:"last"`
	}
	if err := w.Keywords(&args); err != nil {
		return nil, err
	}
	set, err := datasets.OpenNPY(filepath.Join(args.Root, "images.npy"), filepath.Join(args.Root, "labels.npy"))
	if err != nil {
		return nil, err
	}
	if args.First < 0 || args.First > args.Last || args.Last > set.Len() {
		return nil, errors.Join(fmt.Errorf("images %d to %d of %d", args.First, args.Last, set.Len()), set.Close())
	}
	return digits{set, args.First, args.Last}, nil
}

// Len returns the number of images.
func (d digits) Len() int { return d.last - d.first }

// Get returns one image and its label.
func (d digits) Get(ctx context.Context, i int) (data.Sample, error) {
	s, err := d.TensorDataset.Get(ctx, d.first+i)
	if err != nil {
		return nil, err
	}
	return data.Sample{data.ToTensor.Apply(nil, s[0]), s[1]}, nil
}

// Gather writes the images and the labels at indices to the two tensors of a batch.
func (d digits) Gather(ctx context.Context, indices []int, into data.Batch) error {
	shifted := make([]int, len(indices))
	for k, i := range indices {
		shifted[k] = d.first + i
	}
	raw := data.Batch{tensor.New(tensor.Uint8, len(indices), 28, 28), into[1]}
	if err := d.TensorDataset.Gather(ctx, shifted, raw); err != nil {
		return err
	}
	data.ToTensor.Apply(into[0], raw[0])
	return nil
}
