package data

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Sample has the fields of one example, such as an image and a label, without a dimension for the
// batch.
type Sample []*tensor.Tensor

// A Batch is several samples together: the fields of a Sample, each with a first dimension for the
// samples.
type Batch []*tensor.Tensor

// Close closes the tensors of the batch. The Loader uses the memory for a later batch as soon as
// all views of it are closed as well. To keep a part of the batch, Clone it before, or keep a view,
// as of Narrow or Select, and close the view later. Close is idempotent.
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

// A Dataset is a numbered set of samples. All samples have the same number of fields, and within a
// batch a field has one dtype and shape. Worker goroutines call Get at the same time. For worker
// processes, the type of the Dataset is registered by wire.RegisterType. Random numbers for a
// sample come from [Rand] or [SampleSeed].
//
// The Loader copies the Sample that Get returns into the batch, and does not close it.
type Dataset interface {
	Len() int
	Get(ctx context.Context, i int) (Sample, error)
}

// A DatasetCloser is a Dataset that has files or memory. The caller closes it when no Loader uses
// it.
type DatasetCloser interface {
	Dataset
	Close() error
}

// A Gatherer is a Dataset that writes its samples into a batch itself, which is faster than Get,
// since it makes no tensors. Gather writes sample indices[k] to row k of each tensor of into, which
// has as many rows as indices. The rows have the layout of the batch before. If a sample has
// another layout, Gather returns an error. Random numbers for sample i come from SampleSeed(ctx,
// i).
type Gatherer interface {
	Dataset
	Gather(ctx context.Context, indices []int, into Batch) error
}

// An Opener is a Dataset or a Stream that each worker opens for itself, such as one over a file or
// a connection. Each worker calls Open once before its first sample, as torch calls worker_init_fn.
// Open returns the same or another Dataset or Stream. If it has a Close, the worker calls Close at
// its end.
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

// decodeAny reads a value of any type that is a T.
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
		return t, fmt.Errorf("%w: a %T is no %T", codec.ErrFormat, v, &t)
	}
	return t, nil
}

// A TensorDataset is a Dataset in memory: sample i is row i of every tensor. After Share it can be
// passed to other processes, which then read the same memory. Do not write to the tensors while a
// Loader uses them. Several goroutines may use a TensorDataset.
//
// The tensors may be on a device. Then batches are gathered on the device and stay there, and
// worker processes are refused with ErrPlace.
type TensorDataset struct {
	Tensors []*tensor.Tensor // contiguous tensors with the same first dimension
}

var _ Gatherer = (*TensorDataset)(nil)

func init() { codec.RegisterType[*TensorDataset]("data.TensorDataset") }

// NewTensorDataset makes a TensorDataset of tensors with the same first dimension. Its Close closes
// the tensors.
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

// Narrow returns the n samples from start on, as views of the same memory. The caller closes both
// sets.
func (d *TensorDataset) Narrow(start, n int) *TensorDataset {
	ts := make([]*tensor.Tensor, len(d.Tensors))
	for k, t := range d.Tensors {
		ts[k] = t.Narrow(0, start, n)
	}
	return &TensorDataset{ts}
}

// Share moves the samples to shared memory, if they are not there yet. Then passing the set to
// other processes copies nothing. The error wraps shm.ErrNoSpace if the domain is full.
func (d *TensorDataset) Share() error {
	for k, t := range d.Tensors {
		if err := t.Share(); err != nil {
			return fmt.Errorf("share tensor %d of a data set: %w", k, err)
		}
	}
	return nil
}

// To moves the samples to a device, or to the host if dev is nil. The error is the device's, and
// then no sample has moved.
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

// Close closes the tensors in this process. It is idempotent.
func (d *TensorDataset) Close() error {
	var errs []error
	for _, t := range d.Tensors {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
