package data

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Sample is the list of fields of one example, such as an image and a label, without a batch
// dimension.
type Sample []*tensor.Tensor

// A Batch is a list of fields, in the order of the [Sample]. The first dimension of each tensor is
// the batch dimension.
type Batch []*tensor.Tensor

// Close closes the tensors of the batch. The Loader reuses the memory once all views of it are
// closed as well. To keep a part of the batch, clone it before Close, or keep a view (such as from
// Narrow or Select) and close the view later. Close is idempotent.
func (b Batch) Close() (err error) {
	for _, t := range b {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// checkValid returns an error that wraps [ErrSample] if s has no fields, or if a field is nil or
// closed.
func (s Sample) checkValid() (err error) {
	if len(s) == 0 {
		return fmt.Errorf("%w: no fields", ErrSample)
	}
	at := 0
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: field %d is a closed tensor: a Dataset must not close the tensors it returns",
				ErrSample, at)
		}
	}()
	for k, t := range s {
		if t == nil {
			return fmt.Errorf("%w: field %d is nil", ErrSample, k)
		}
		at = k
		t.Version() // panics if the tensor is closed
	}
	return nil
}

// A Dataset is a set of samples with random access by index. All samples must have the same number
// of fields, and within a batch each field must have one dtype and shape. Get may be called
// concurrently by worker goroutines. To use worker processes, register the Dataset's type with
// wire.RegisterType. Random augmentation should take its random numbers from [Rand] or
// [SampleSeed], so that it does not depend on the workers.
//
// The context of Get has the deadline of the epoch's context. It is canceled when that context is,
// and when the consumer leaves the loop; this holds for goroutines and for processes.
//
// The Loader copies the Sample returned by Get into the batch. It does not close the tensors, and
// Get must not return closed ones.
type Dataset interface {
	Len() int
	Get(ctx context.Context, i int) (Sample, error)
}

// A DatasetCloser is a [Dataset] that owns files or memory. The caller must close it, after the
// last Loader that uses it.
type DatasetCloser interface {
	Dataset
	Close() error
}

// A Gatherer is a [Dataset] that writes samples into a batch directly. This is faster than Get
// because no tensors are made. Gather must write sample indices[k] to row k of each tensor in into,
// which has len(indices) rows. The rows have the layout of the previous batch; Gather must return
// an error if a sample has another layout. Random numbers for sample i should be seeded with
// [SampleSeed](ctx, i).
type Gatherer interface {
	Dataset
	Gather(ctx context.Context, indices []int, into Batch) error
}

// An Opener is a [Dataset] or a [Stream] that each worker opens for itself, such as one over a file
// or a connection. Each worker calls Open once before its first sample, as torch calls
// worker_init_fn. Open must return a Dataset or a Stream, which may be the receiver. If the result
// has a Close method, the worker calls it when it ends.
type Opener interface {
	Open(ctx context.Context) (any, error)
}

var anyPlan = sync.OnceValues(codec.PlanOf[any])

func encodeAny(e *codec.Encoder, v any) error {
	plan, err := anyPlan()
	if err != nil {
		return err
	}
	return plan.Encode(e, v)
}

// decodeAny decodes a value of a registered type. It returns an error that wraps [codec.ErrFormat]
// if the value is not a T.
func decodeAny[T any](d *codec.Decoder) (t T, err error) {
	plan, err := anyPlan()
	if err != nil {
		return t, err
	}
	v, err := plan.Decode(d)
	if err != nil {
		return t, err
	}
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("%w: got %T, want %T", codec.ErrFormat, v, &t)
	}
	return t, nil
}

// A TensorDataset is a [Dataset] in memory: sample i consists of row i of each tensor. After
// [TensorDataset.Share] it can be passed to other processes, which then read the same memory. The
// tensors must not be modified while a Loader uses them. Get and Gather may be called from several
// goroutines.
//
// The tensors may be on a device. Batches are then gathered on the device and stay there, and a
// Loader with worker processes fails with [ErrPlace].
type TensorDataset struct {
	Tensors []*tensor.Tensor // contiguous tensors with the same first dimension
}

var _ Gatherer = (*TensorDataset)(nil)

func init() { codec.RegisterType[*TensorDataset]("data.TensorDataset") }

// NewTensorDataset returns a TensorDataset of the given tensors. It panics if there are none, or
// if their first dimensions differ. [TensorDataset.Close] closes the tensors. A tensor that is
// not contiguous is replaced by a copy, and the caller must close the original.
func NewTensorDataset(tensors ...*tensor.Tensor) *TensorDataset {
	if len(tensors) == 0 {
		panic("data: TensorDataset: got no tensors, want at least 1")
	}
	ts := make([]*tensor.Tensor, len(tensors))
	for k, t := range tensors {
		if t.Dims() == 0 || t.Dim(0) != tensors[0].Dim(0) {
			panic(fmt.Sprintf("data: TensorDataset: first dimensions of shapes %v and %v differ",
				tensors[0].Shape(), t.Shape()))
		}
		ts[k] = contiguousTensor(t)
	}
	return &TensorDataset{ts}
}

// Len returns the number of samples.
func (d *TensorDataset) Len() int { return d.Tensors[0].Dim(0) }

// Get returns views of row i of each tensor. It returns an error if i is out of range.
func (d *TensorDataset) Get(_ context.Context, i int) (Sample, error) {
	if i < 0 || i >= d.Len() {
		return nil, fmt.Errorf("sample %d is out of range [0, %d)", i, d.Len())
	}
	s := make(Sample, len(d.Tensors))
	for k, t := range d.Tensors {
		s[k] = t.Select(0, i)
	}
	return s, nil
}

// Gather copies row indices[k] of each tensor to row k of the corresponding tensor in into. It
// returns an error if an index is out of range.
func (d *TensorDataset) Gather(_ context.Context, indices []int, into Batch) error {
	for _, i := range indices {
		if i < 0 || i >= d.Len() {
			return fmt.Errorf("sample %d is out of range [0, %d)", i, d.Len())
		}
	}
	for k, t := range d.Tensors {
		if t.Device() == nil {
			gatherTensorRows(into[k], t, indices)
		} else if err := pickRowsOn(into[k], t, indices); err != nil {
			return err
		}
	}
	return nil
}

// Narrow returns a TensorDataset of n samples beginning with sample start, as views of the same
// memory. The caller must close both. Narrow panics if the samples are out of range.
func (d *TensorDataset) Narrow(start, n int) *TensorDataset {
	ts := make([]*tensor.Tensor, len(d.Tensors))
	for k, t := range d.Tensors {
		ts[k] = t.Narrow(0, start, n)
	}
	return &TensorDataset{ts}
}

// Share moves the tensors to shared memory unless they are there already, so that passing the
// TensorDataset to other processes copies no data. The error wraps shm.ErrNoSpace if the domain is
// full.
func (d *TensorDataset) Share() error {
	for k, t := range d.Tensors {
		if err := t.Share(); err != nil {
			return fmt.Errorf("share tensor %d of data set: %w", k, err)
		}
	}
	return nil
}

// To moves the tensors to a device, or to the host if dev is nil, and closes the previous tensors.
// If a tensor cannot be moved, To returns the device's error and changes nothing.
func (d *TensorDataset) To(dev tensor.Device) error {
	var moved []*tensor.Tensor
	for k, t := range d.Tensors {
		there, err := t.ToDevice(dev)
		if err != nil {
			closeAll(moved)
			return fmt.Errorf("move tensor %d of data set: %w", k, err)
		}
		moved = append(moved, there)
	}
	err := d.Close()
	d.Tensors = moved
	return err
}

// Close closes the tensors in this process. It is idempotent.
func (d *TensorDataset) Close() error {
	var errs []error
	for _, t := range d.Tensors {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
