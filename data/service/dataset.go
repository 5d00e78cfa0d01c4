package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/internal/tree"
)

// A Dataset provides random access to the samples of data hosts, for a loader with its own order,
// such as a DataLoader of PyTorch. The data hosts apply the Transform of their Loader and ignore
// its order. Random transforms depend on the seed of the data hosts, the seed and epoch of the
// local loader, and the sample number. Its methods may be called from several goroutines. The
// caller must close the Dataset.
type Dataset struct {
	client  *client
	samples int
}

// OpenDataset connects to data hosts, as [Dial] does. The caller must close the Dataset. Errors
// are as with [Dial]; the error also wraps [ErrOptions] if opts contains World, Coordinated or
// Dynamic, or if the data hosts serve a Stream.
func OpenDataset(ctx context.Context, opts Options, addrs ...string) (*Dataset, error) {
	if opts.World > 1 || opts.Coordinated || opts.Dynamic {
		return nil,
			fmt.Errorf("%w: World, Coordinated and Dynamic apply only to Dial: here the loader determines the order",
				ErrOptions)
	}
	c, err := dial(ctx, opts, addrs)
	if err != nil {
		return nil, err
	}
	if c.served.Parts > 0 {
		return nil, errors.Join(fmt.Errorf("%w: the data hosts serve a Stream, whose samples have no indices: use Dial",
			ErrOptions), c.close())
	}
	return &Dataset{c, c.served.Samples}, nil
}

// Len returns the number of samples.
func (d *Dataset) Len() int { return d.samples }

// Get returns sample i. The caller must close its tensors. The error is a [*HostError], for
// example if i is out of range, or the cause of ctx, or [data.ErrClosed]. Or it wraps
// shm.ErrNoSpace if shared memory is full, or [ErrOptions] if the samples have a structure or
// this one was skipped.
func (d *Dataset) Get(ctx context.Context, i int) (data.Sample, error) {
	b, err := d.fetch(ctx, []int{i})
	if err != nil {
		return nil, err
	}
	defer b.Close()
	sample := make(data.Sample, len(b.Tensors))
	for k, t := range b.Tensors {
		row := t.Select(0, 0)
		sample[k] = row.Clone()
		row.Close()
	}
	return sample, nil
}

// Gather copies sample indices[k] to row k of each tensor in into, with one request. The error
// wraps [data.ErrShape] if the fields of into do not match the samples; other errors are as with
// Get.
func (d *Dataset) Gather(ctx context.Context, indices []int, into data.Batch) error {
	b, err := d.fetch(ctx, indices)
	if err != nil {
		return err
	}
	defer b.Close()
	if len(b.Tensors) != len(into) {
		return fmt.Errorf("%w: got %d fields, want %d as in the batch", data.ErrShape, len(b.Tensors), len(into))
	}
	for k, t := range b.Tensors {
		if t.DType() != into[k].DType() || !slices.Equal(t.Shape(), into[k].Shape()) {
			return fmt.Errorf("%w: field %d: got %v of %v, want %v of %v as in the batch",
				data.ErrShape, k, t.Shape(),
				t.DType(), into[k].Shape(), into[k].DType())
		}
		into[k].CopyFrom(t)
	}
	return nil
}

func (d *Dataset) fetch(ctx context.Context, indices []int) (b maker.Batch, err error) {
	q := frame{Kind: frameGather, Indices: indices}
	if info, ok := data.WorkerInfo(ctx); ok {
		// In a DataLoader of PyTorch the seed changes with each epoch, and the epoch does not.
		q.Epoch = int((info.Seed*0x9e3779b97f4a7c15 + uint64(info.Epoch)) >> 1)
	}
	f, err := d.client.fetch(ctx, q)
	if err != nil {
		return b, err
	}
	if b = f.batch(); b.Samples != len(indices) || b.Spec != tree.Tensors(len(b.Tensors)) {
		b.Close()
		return b, fmt.Errorf("%w: samples with a structure, or with skipped ones, have no indices: use Dial",
			ErrOptions)
	}
	return b, nil
}

// Close closes the connections. It is idempotent.
func (d *Dataset) Close() error { return d.client.close() }
