package data

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/internal/tree"
)

// A ValueDataset is a numbered set of examples of any structure: tensors, numbers, bools, strings,
// []byte, and slices, arrays, maps and structs of these, as torch's default_collate knows them.
// Structured makes a Dataset of it. The fields of a struct are named by the tag `data:"name"`; "-"
// leaves one out, and a field _ with `data:",tuple"` makes the struct a list.
//
// A batch of them has tensors where samples have tensors (stacked), numbers (int64, float64) and
// bools, lists of strings for strings, and maps and lists of batches for maps and lists. So all
// samples of a batch have the same keys and as many items; a SampleError names the place where one
// has not. BatchesOf has a batch put together again.
type ValueDataset interface {
	Len() int
	Value(ctx context.Context, i int) (any, error)
}

// A ValueStream is a Stream of examples of any structure.
type ValueStream interface {
	Values(ctx context.Context, p Part) iter.Seq2[any, error]
}

func init() {
	Register[*StructuredDataset]("data.StructuredDataset")
	Register[*StructuredStream]("data.StructuredStream")
}

// A StructuredDataset is a Dataset of samples of any structure.
type StructuredDataset struct{ Of Any[ValueDataset] }

// Structured makes a Dataset of a ValueDataset. For workers that are processes, the type of that
// was given to Register.
func Structured(of ValueDataset) *StructuredDataset {
	return &StructuredDataset{Any[ValueDataset]{of}}
}

// Structs makes a Dataset of n samples of a type, such as a struct, for workers that are
// goroutines: a function does not go to processes.
func Structs[T any](n int, get func(ctx context.Context, i int) (T, error)) *StructuredDataset {
	return Structured(&values[T]{n, get})
}

type values[T any] struct {
	n   int
	get func(ctx context.Context, i int) (T, error)
}

func (v *values[T]) Len() int { return v.n }

func (v *values[T]) Value(ctx context.Context, i int) (any, error) { return v.get(ctx, i) }

// Len returns the number of samples.
func (d *StructuredDataset) Len() int { return d.Of.Value.Len() }

// Value returns a sample.
func (d *StructuredDataset) Value(ctx context.Context, i int) (any, error) {
	return d.Of.Value.Value(ctx, i)
}

// Get returns the tensors of a sample: those in it, and those that numbers and strings become, in
// the order of its structure.
func (d *StructuredDataset) Get(ctx context.Context, i int) (Sample, error) {
	v, err := d.Value(ctx, i)
	if err != nil {
		return nil, err
	}
	return leaves(v)
}

func leaves(v any) (Sample, error) {
	flat, err := tree.Flatten(v, tree.Rules{})
	if err != nil {
		return nil, notASample(err)
	}
	return flat.Tensors, nil
}

// Close closes the ValueDataset if it can be.
func (d *StructuredDataset) Close() error {
	if c, ok := d.Of.Value.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// A StructuredStream is a Stream of samples of any structure.
type StructuredStream struct{ Of Any[ValueStream] }

// NewStructuredStream makes a Stream of a ValueStream.
func NewStructuredStream(of ValueStream) *StructuredStream {
	return &StructuredStream{Any[ValueStream]{of}}
}

// Values yields the samples of a part.
func (s *StructuredStream) Values(ctx context.Context, p Part) iter.Seq2[any, error] {
	return s.Of.Value.Values(ctx, p)
}

// Samples yields the tensors of the samples of a part.
func (s *StructuredStream) Samples(ctx context.Context, p Part) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for v, err := range s.Values(ctx, p) {
			var sample Sample
			if err == nil {
				sample, err = leaves(v)
			}
			if !yield(sample, err) {
				return
			}
		}
	}
}

// Value returns sample i of a Dataset as the set made it: of a ValueDataset, or of sets of those,
// any value, and else a Sample.
func Value(ctx context.Context, ds Dataset, i int) (any, error) {
	if v, ok := ds.(ValueDataset); ok && structured(ds) {
		return v.Value(ctx, i)
	}
	return ds.Get(ctx, i)
}

// HasValues reports whether the samples of a Dataset or a Stream are those of a ValueDataset or a
// ValueStream, and not plain.
func HasValues(source any) bool { return structured(source) }

// structured reports whether a set has samples of any structure.
func structured(source any) bool {
	switch d := source.(type) {
	case *Subset:
		return structured(d.Of.Value)
	case *ConcatDataset:
		return anyStructured(d.Of)
	case *StackDataset:
		return anyStructured(d.Of)
	case *ChainDataset:
		for _, s := range d.Of {
			if structured(s.Value) {
				return true
			}
		}
		return false
	case ValueDataset, ValueStream:
		return true
	}
	return false
}

func anyStructured(of []Any[Dataset]) bool {
	for _, d := range of {
		if structured(d.Value) {
			return true
		}
	}
	return false
}

// Value returns a sample as its data set made it.
func (d *ConcatDataset) Value(ctx context.Context, i int) (any, error) {
	part, inside, err := d.find(i)
	if err != nil {
		return nil, err
	}
	return Value(ctx, d.Of[part].Value, inside)
}

// Value returns the list of what sample i of each data set is, as it was made.
func (d *StackDataset) Value(ctx context.Context, i int) (any, error) {
	all := make([]any, len(d.Of))
	for k, part := range d.Of {
		v, err := Value(ctx, part.Value, i)
		if err != nil {
			return nil, err
		}
		all[k] = v
	}
	return all, nil
}

// Value returns a sample as its data set made it.
func (d *Subset) Value(ctx context.Context, i int) (any, error) {
	if i < 0 || i >= len(d.Indices) {
		return nil, outside(i, len(d.Indices))
	}
	return Value(ctx, d.Of.Value, d.Indices[i])
}

// Values yields the samples of the same part of each Stream, as they were made.
func (d *ChainDataset) Values(ctx context.Context, p Part) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for _, s := range d.Of {
			for v, err := range valuesOf(ctx, s.Value, p) {
				if !yield(v, err) {
					return
				}
			}
		}
	}
}

// valuesOf yields the samples of a part as their Stream makes them.
func valuesOf(ctx context.Context, s Stream, p Part) iter.Seq2[any, error] {
	if v, ok := s.(ValueStream); ok && structured(s) {
		return v.Values(ctx, p)
	}
	return func(yield func(any, error) bool) {
		for sample, err := range s.Samples(ctx, p) {
			if !yield(sample, err) {
				return
			}
		}
	}
}
