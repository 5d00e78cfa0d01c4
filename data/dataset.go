package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/tensor"
)

// A Sample is one example: its fields, such as an image and a label, each without a dimension for the batch.
type Sample []*tensor.Tensor

// A Batch is some examples together: the fields of a Sample, each with a first dimension for the examples.
type Batch []*tensor.Tensor

// A Dataset is a numbered set of examples. All samples have the same number of fields, and a field the same dtype and
// shape in all of them. A [Loader] with Workers calls Get from several goroutines.
type Dataset interface {
	Len() int
	Get(ctx context.Context, i int) (Sample, error)
}

// A Gatherer is a Dataset that writes whole batches by itself, faster than sample by sample. Gather writes sample indices[k] to
// row k of each tensor of into, which has as many rows.
type Gatherer interface {
	Dataset
	Gather(ctx context.Context, indices []int, into Batch) error
}

// A TensorDataset is a Dataset in memory: sample i is row i of every tensor. After Share it can be passed to other processes, which
// then read the same memory; nobody writes it. It may be used by several goroutines.
type TensorDataset struct {
	Tensors []*tensor.Tensor // all of the same first dimension, and contiguous
}

var _ Gatherer = (*TensorDataset)(nil)

// NewTensorDataset makes a TensorDataset of tensors with the same first dimension, and takes them over: its Close closes
// them.
func NewTensorDataset(tensors ...*tensor.Tensor) *TensorDataset {
	if len(tensors) == 0 {
		panic("data: a TensorDataset of no tensors")
	}
	ts := make([]*tensor.Tensor, len(tensors))
	for k, t := range tensors {
		if t.Dims() == 0 || t.Dim(0) != tensors[0].Dim(0) {
			panic(fmt.Sprintf("data: tensors of shapes %v and %v in a TensorDataset: their first dimensions differ", tensors[0].Shape(), t.Shape()))
		}
		ts[k] = dense(t)
	}
	return &TensorDataset{ts}
}

// Len returns the number of samples.
func (d *TensorDataset) Len() int { return d.Tensors[0].Dim(0) }

// Get returns views of sample i's rows.
func (d *TensorDataset) Get(_ context.Context, i int) (Sample, error) {
	if i < 0 || i >= d.Len() {
		return nil, fmt.Errorf("sample %d of %d: out of range", i, d.Len())
	}
	s := make(Sample, len(d.Tensors))
	for k, t := range d.Tensors {
		s[k] = t.Select(0, i)
	}
	return s, nil
}

// Gather copies samples into the rows of a batch.
func (d *TensorDataset) Gather(_ context.Context, indices []int, into Batch) error {
	for _, i := range indices {
		if i < 0 || i >= d.Len() {
			return fmt.Errorf("sample %d of %d: out of range", i, d.Len())
		}
	}
	for k, t := range d.Tensors {
		gather(into[k], t, indices)
	}
	return nil
}

// Narrow returns the n samples from start on, as views of the same memory. Both sets are to be closed.
func (d *TensorDataset) Narrow(start, n int) *TensorDataset {
	ts := make([]*tensor.Tensor, len(d.Tensors))
	for k, t := range d.Tensors {
		ts[k] = t.Narrow(0, start, n)
	}
	return &TensorDataset{ts}
}

// Share moves the samples to shared memory, once; passing the set to other processes then copies nothing.
func (d *TensorDataset) Share() error {
	for k, t := range d.Tensors {
		if err := t.Share(); err != nil {
			return fmt.Errorf("share tensor %d of a data set: %w", k, err)
		}
	}
	return nil
}

// Close drops this process's hold of the tensors. It may be called again.
func (d *TensorDataset) Close() error {
	var errs []error
	for _, t := range d.Tensors {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
