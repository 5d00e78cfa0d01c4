package data

import (
	"context"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/registry"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// A Collate is a registered function that makes a batch of samples, as torch's collate_fn does. It
// must be made by [RegisterCollate].
type Collate struct {
	name   string
	make   makeBatch
	values bool // takes the values returned by the data set, before a Transform
}

// A makeBatch makes a batch of samples, which it does not close. The caller must close b. spec
// describes the structure of the batch; it is empty for a plain batch.
type makeBatch func(ctx context.Context, samples []sample) (b Batch, spec string, err error)

// RegisterCollate registers f under a name for use as Options.Collate. T must be [Sample], which f
// receives after the Transform, or, for a [ValueDataset], the type of its values, or any. B must be
// [Batch] or a value that [BatchesOf] can return. Its tensors should have a first dimension for the
// samples. f may call [Stack] and [DefaultCollate]. Samples of one layout need no Collate.
//
// The result should be kept in a package-level variable, so that worker processes register the same
// name. RegisterCollate panics if the name is empty or taken, if f is nil, and after shoal.Main has
// begun.
func RegisterCollate[T, B any](name string, f func(ctx context.Context, samples []T) (batch B, err error)) *Collate {
	if name == "" || f == nil {
		panic(fmt.Sprintf("data: RegisterCollate(%q): want a name and a function", name))
	}
	c := &Collate{name: name}
	if plain, ok := any(f).(func(ctx context.Context, samples []Sample) (Batch, error)); ok {
		c.make = c.sampleFunc(plain)
	} else {
		c.values = true
		c.make = c.valueFunc(func(ctx context.Context, samples []sample) (any, error) {
			all, err := valuesAs[T](samples, name)
			if err != nil {
				return nil, err
			}
			return f(ctx, all)
		})
	}
	collates.Add("data: RegisterCollate", name, c)
	return c
}

// sampleFunc adapts a function of plain samples. The result also fails, as check does, for a
// batch that is empty or invalid.
func (c *Collate) sampleFunc(f func(ctx context.Context, samples []Sample) (Batch, error)) makeBatch {
	return func(ctx context.Context, samples []sample) (Batch, string, error) {
		plain := make([]Sample, len(samples))
		for k, s := range samples {
			plain[k] = s.Sample
		}
		b, err := f(ctx, plain)
		if err == nil {
			err = c.check(b)
		}
		return b, "", err
	}
}

// valueFunc adapts a function that returns a batch of any structure. The result also fails, as
// check does, for a batch without tensors or with an invalid one.
func (c *Collate) valueFunc(f func(ctx context.Context, samples []sample) (any, error)) makeBatch {
	return func(ctx context.Context, samples []sample) (Batch, string, error) {
		v, err := f(ctx, samples)
		if err != nil {
			return nil, "", err
		}
		flat, err := tree.FlattenBatch(v)
		if err == nil {
			err = c.check(flat.Tensors)
		}
		return flat.Tensors, flat.Spec, err
	}
}

// valuesAs returns the values of samples as type T. It returns an error that wraps [ErrSample] if a
// value has another type. name is the name of the Collate.
func valuesAs[T any](samples []sample, name string) ([]T, error) {
	all := make([]T, len(samples))
	for k, s := range samples {
		v, ok := s.value.(T)
		if !ok {
			return nil, &tree.RowError{Row: k,
				Err: fmt.Errorf("%w: got %T, want %[4]T for Collate %[3]q", ErrSample, s.value, name, all[k])}
		}
		all[k] = v
	}
	return all, nil
}

// DefaultCollate makes a batch of values as a [Loader] does. Maps become map[string]any, lists
// become []any, and strings become []string. The caller must close the tensors of the batch. The
// error wraps [ErrSample] or [ErrShape] and names the sample and the path in it.
func DefaultCollate(samples []any, how Ragged) (any, error) {
	all, rules := make([]tree.Value, len(samples)), tree.NewRules(how.rulesByName())
	for k, s := range samples {
		v, err := tree.Flatten(s, rules)
		if err != nil {
			return nil, fmt.Errorf("data: sample %d of a batch: %w", k, notASample(err))
		}
		all[k] = v
	}
	batch, err := tree.Collate(all, rules,
		func(fields []tree.Field) ([]*tensor.Tensor, error) { return allocateBlock(fields, false) })
	if err != nil {
		return nil, fmt.Errorf("data: %w", shapeError(err))
	}
	return batch.Any()
}

// check returns an error that wraps [ErrEmptyBatch] if b has no fields, or [ErrSample] if a field
// is nil or closed.
func (c *Collate) check(b Batch) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: Collate %q returned no fields", ErrEmptyBatch, c.name)
	}
	if err := Sample(b).checkValid(); err != nil {
		return fmt.Errorf("batch of Collate %q: %w", c.name, err)
	}
	return nil
}

var collates registry.Table[*Collate]

// Stack is the default Collate. It copies samples of one layout into a batch that is allocated
// as one block on the heap. The caller must close the batch. It is nil if there are no samples.
// The error wraps [ErrShape] or [ErrSample] and names the sample.
func Stack(samples []Sample) (Batch, error) { return stack(samples, false) }

// StackShared is like [Stack], but allocates the batch in shared memory.
func StackShared(samples []Sample) (Batch, error) { return stack(samples, true) }

// stack copies samples of one layout into a batch on the heap, or in shared memory if shared is
// set. It returns nil for no samples. The error for a sample that does not fit is a
// [*tree.RowError] with its row.
func stack(samples []Sample, shared bool) (Batch, error) {
	if len(samples) == 0 {
		return nil, nil
	}
	for row, s := range samples {
		if err := s.checkValid(); err != nil {
			return nil, &tree.RowError{Row: row, Err: err}
		}
	}
	f, err := newBatchBuffer(layoutOf(samples[0], 0), len(samples), shared)
	if err != nil {
		return nil, err
	}
	for row, s := range samples {
		if err := f.batch.copyToRow(row, s); err != nil {
			closeAll(f.batch)
			return nil, &tree.RowError{Row: row, Err: err}
		}
	}
	return f.batch, nil
}

// convert makes a batch of one sample without a batch dimension, as torch's default_convert
// does. The caller must close the batch.
func convert(s Sample, shared bool) (Batch, error) {
	f, err := newBatchBuffer(layoutOf(s, 0), single, shared)
	if err != nil {
		return nil, err
	}
	for k, t := range s {
		f.batch[k].CopyFrom(t)
	}
	return f.batch, nil
}

// gatherTensorRows copies the given rows of src to the first rows of dst, on the host. The rows
// must be in range. Both must be contiguous, with the same dtype and row size.
func gatherTensorRows(dst, src *tensor.Tensor, rows []int) {
	to, from := tensor.Bytes(dst), tensor.Bytes(src)
	n := len(from) / max(1, src.Dim(0))
	for k, i := range rows {
		copy(to[k*n:(k+1)*n], from[i*n:(i+1)*n])
	}
	runtime.KeepAlive(src)
	dst.Touch()
}
