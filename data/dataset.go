package data

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/tensor"
)

// A Sample is one example: its fields, such as an image and a label, each without a dimension for
// the batch.
type Sample []*tensor.Tensor

// A Batch is some examples together: the fields of a Sample, each with a first dimension for the
// examples.
type Batch []*tensor.Tensor

// Close closes the tensors of the batch: its memory is used again, by the next batches, as soon as
// all tensors that view it are closed. It is idempotent. What is still to be used is cloned before,
// or kept as a view, by Narrow or Select for instance, that is closed later.
func (b Batch) Close() (err error) {
	for _, t := range b {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// sound returns an ErrSample unless a batch can be made of s.
func (s Sample) sound() (err error) {
	if len(s) == 0 {
		return fmt.Errorf("%w: it has no fields", ErrSample)
	}
	at := 0
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: field %d is a closed tensor; a Dataset leaves what it returns open", ErrSample, at)
		}
	}()
	for k, t := range s {
		if t == nil {
			return fmt.Errorf("%w: field %d is nil", ErrSample, k)
		}
		at = k
		t.Version() // panics if it is closed
	}
	return nil
}

// A Dataset is a numbered set of examples. All samples have the same number of fields, and a field
// the same dtype and shape in all of a batch. A [Loader] with workers on goroutines calls Get from
// several of them at once; for workers that are processes, the Dataset is of a type that was given
// to Register. What is random in a sample comes from [Rand] or [SampleSeed].
//
// The Loader copies what Get returns into the batch and does not close it.
type Dataset interface {
	Len() int
	Get(ctx context.Context, i int) (Sample, error)
}

// A DatasetCloser is a Dataset with files or memory of its own. Its owner closes it, when no Loader
// uses it any more.
type DatasetCloser interface {
	Dataset
	Close() error
}

// A Gatherer is a Dataset that writes several samples of a batch by itself: faster than one by one,
// and without a tensor for each. Gather writes sample indices[k] to row k of each tensor of into,
// which has as many rows, or returns an error where a row is of another layout than the sample:
// rows are like those of the batch before. What is random in sample i comes from SampleSeed(ctx,
// i).
type Gatherer interface {
	Dataset
	Gather(ctx context.Context, indices []int, into Batch) error
}

// An Opener is a Dataset, or a Stream, of which each worker has its own: what it opens, a file or a
// connection, lives where it is used. Open is called once in each worker before its first sample:
// torch's worker_init_fn. It returns the same or another Dataset, or Stream, which is closed with
// the worker if it has a Close.
type Opener interface {
	Open(ctx context.Context) (any, error)
}

var anyPlan = sync.OnceValues(wire.PlanOf[any])

func encodeAny(e *wire.Encoder, v any) error {
	plan, err := anyPlan()
	if err != nil {
		return err
	}
	return plan.Encode(e, v)
}

// decodeAny reads a value of any type that is a T.
func decodeAny[T any](d *wire.Decoder) (t T, err error) {
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
		return t, fmt.Errorf("%w: a %T is no %T", wire.ErrFormat, v, &t)
	}
	return t, nil
}

// A TensorDataset is a Dataset in memory: sample i is row i of every tensor. After Share it can be
// passed to other processes, which then read the same memory; nobody writes it. It may be used by
// several goroutines.
//
// The tensors may be on a device: rows are gathered there, and batches stay there. Workers that are
// processes are refused by ErrPlace.
type TensorDataset struct {
	Tensors []*tensor.Tensor // all of the same first dimension, and contiguous
}

var _ Gatherer = (*TensorDataset)(nil)

func init() { wire.RegisterType[*TensorDataset]("data.TensorDataset") }

// NewTensorDataset makes a TensorDataset of tensors with the same first dimension, and takes them
// over: its Close closes them.
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
		if t.Device() == nil {
			gather(into[k], t, indices)
		} else if err := pick(into[k], t, indices); err != nil {
			return err
		}
	}
	return nil
}

// Narrow returns the n samples from start on, as views of the same memory. Both sets are to be
// closed.
func (d *TensorDataset) Narrow(start, n int) *TensorDataset {
	ts := make([]*tensor.Tensor, len(d.Tensors))
	for k, t := range d.Tensors {
		ts[k] = t.Narrow(0, start, n)
	}
	return &TensorDataset{ts}
}

// Share moves the samples to shared memory, once; passing the set to other processes then copies
// nothing.
func (d *TensorDataset) Share() error {
	for k, t := range d.Tensors {
		if err := t.Share(); err != nil {
			return fmt.Errorf("share tensor %d of a data set: %w", k, err)
		}
	}
	return nil
}

// To moves the samples to a device, or to the host if that is nil. On an error nothing has moved.
func (d *TensorDataset) To(dev tensor.Device) error {
	var moved []*tensor.Tensor
	for k, t := range d.Tensors {
		there, err := t.ToDevice(dev)
		if err != nil {
			closeAll(moved)
			return fmt.Errorf("move tensor %d of a data set: %w", k, err)
		}
		moved = append(moved, there)
	}
	err := d.Close()
	d.Tensors = moved
	return err
}

// Close drops this process's hold of the tensors. It may be called again.
func (d *TensorDataset) Close() error {
	var errs []error
	for _, t := range d.Tensors {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
