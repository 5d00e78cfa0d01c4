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

// A Dataset has the samples of data hosts by number, for a loader that has an order of its own,
// such as a DataLoader of PyTorch. The data hosts apply their Loader's Transform. They ignore its
// order. What is random in a sample follows from the seed of the data hosts, the seed and the epoch
// of the loader here, and the number. Several goroutines may use it. The caller closes it.
type Dataset struct {
	client  *client
	samples int
}

// OpenDataset connects to data hosts, as [Dial] does, for their samples.
func OpenDataset(ctx context.Context, opts Options, addrs ...string) (*Dataset, error) {
	if opts.World > 1 || opts.Coordinated || opts.Dynamic {
		return nil, fmt.Errorf("%w: World, Coordinated and Dynamic are for Dial: here the loader has the order", ErrOptions)
	}
	c, err := dial(ctx, opts, addrs)
	if err != nil {
		return nil, err
	}
	if c.served.Parts > 0 {
		return nil, errors.Join(fmt.Errorf("%w: the data hosts serve a Stream, whose samples have no numbers: use Dial",
			ErrOptions), c.close())
	}
	return &Dataset{c, c.served.Samples}, nil
}

// Len returns the number of samples.
func (d *Dataset) Len() int { return d.samples }

// Get returns one sample.
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

// Gather writes samples into the rows of a batch. All come in one message.
func (d *Dataset) Gather(ctx context.Context, indices []int, into data.Batch) error {
	b, err := d.fetch(ctx, indices)
	if err != nil {
		return err
	}
	defer b.Close()
	if len(b.Tensors) != len(into) {
		return fmt.Errorf("%w: %d fields, and the batch has %d", data.ErrShape, len(b.Tensors), len(into))
	}
	for k, t := range b.Tensors {
		if t.DType() != into[k].DType() || !slices.Equal(t.Shape(), into[k].Shape()) {
			return fmt.Errorf("%w: field %d is %v of %v, and the batch has %v of %v", data.ErrShape, k, t.Shape(),
				t.DType(), into[k].Shape(), into[k].DType())
		}
		into[k].CopyFrom(t)
	}
	return nil
}

func (d *Dataset) fetch(ctx context.Context, indices []int) (b maker.Batch, err error) {
	q := frame{Kind: frameGather, Indices: indices}
	if info, ok := data.WorkerInfo(ctx); ok {
		// a DataLoader of PyTorch has another seed in each epoch, and the same epoch
		q.Epoch = int((info.Seed*0x9e3779b97f4a7c15 + uint64(info.Epoch)) >> 1)
	}
	f, err := d.client.fetch(ctx, q)
	if err != nil {
		return b, err
	}
	if b = f.batch(); b.Samples != len(indices) || b.Spec != tree.Tensors(len(b.Tensors)) {
		b.Close()
		return b, fmt.Errorf("%w: samples of any structure, or skipped ones, do not come by number: use Dial", ErrOptions)
	}
	return b, nil
}

// Close ends the connections. It is idempotent.
func (d *Dataset) Close() error { return d.client.close() }
