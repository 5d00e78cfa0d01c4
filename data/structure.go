package data

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/tree"
)

// A ValueDataset is a numbered set of samples of any structure: tensors, numbers, bools, strings,
// []byte, and slices, arrays, maps and structs of these, as torch's default_collate takes them.
// [Structured] makes a Dataset of it. A tag `data:"name"` names a field of a struct; "-" leaves the
// field out, and a field _ with the tag `data:",tuple"` makes the struct a list.
//
// A batch has one tensor for the tensors of its samples (stacked), for their numbers (Int64,
// Float64) and for their bools, a []string for their strings, and maps and lists for their maps and
// lists. So all samples of a batch must have the same keys and the same number of items. If one has
// not, a SampleError names the place. [BatchesOf] returns batches as Go types.
type ValueDataset interface {
	Len() int
	Value(ctx context.Context, i int) (any, error)
}

// A ValueStream is a Stream of samples of any structure, as those of a ValueDataset.
// [StructuredStream] makes a Stream of it.
type ValueStream interface {
	Values(ctx context.Context, p Part) iter.Seq2[any, error]
}

func init() {
	codec.RegisterType[*structuredDataset]("data.StructuredDataset")
	codec.RegisterType[*structuredOpener]("data.structuredOpener")
	codec.RegisterType[*structuredStream]("data.StructuredStream")
}

// A structuredDataset is a Dataset of samples of any structure.
type structuredDataset struct{ Of Any[ValueDataset] }

// Structured makes a Dataset of a ValueDataset. The result is both: Value returns the value, and
// Get returns its tensors, with numbers and strings as tensors, in the order of the structure. If
// the ValueDataset is an Opener, so is the result. Close closes the ValueDataset if it has a Close.
// For worker processes, the type of the ValueDataset is registered by wire.RegisterType.
func Structured(of ValueDataset) DatasetCloser {
	d := structuredDataset{Any[ValueDataset]{of}}
	if _, ok := of.(Opener); ok {
		return &structuredOpener{d}
	}
	return &d
}

// Structs returns a Dataset of n samples of type T, mostly a struct, which get returns. Workers
// must be goroutines, since a function cannot be sent to processes.
func Structs[T any](n int, get func(ctx context.Context, i int) (T, error)) Dataset {
	return Structured(&values[T]{n, get})
}

type values[T any] struct {
	n   int
	get func(ctx context.Context, i int) (T, error)
}

func (v *values[T]) Len() int { return v.n }

func (v *values[T]) Value(ctx context.Context, i int) (any, error) { return v.get(ctx, i) }

// Len returns the number of samples.
func (d *structuredDataset) Len() int { return d.Of.Value.Len() }

// Value returns a sample.
func (d *structuredDataset) Value(ctx context.Context, i int) (any, error) {
	return d.Of.Value.Value(ctx, i)
}

// Get returns the tensors of a sample.
func (d *structuredDataset) Get(ctx context.Context, i int) (Sample, error) {
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
func (d *structuredDataset) Close() error {
	if c, ok := d.Of.Value.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// A structuredOpener is a structuredDataset of a ValueDataset that is an Opener.
type structuredOpener struct{ Of structuredDataset }

// Len returns the number of samples.
func (d *structuredOpener) Len() int { return d.Of.Len() }

// Value returns a sample.
func (d *structuredOpener) Value(ctx context.Context, i int) (any, error) { return d.Of.Value(ctx, i) }

// Get returns the tensors of a sample.
func (d *structuredOpener) Get(ctx context.Context, i int) (Sample, error) { return d.Of.Get(ctx, i) }

// Close closes the ValueDataset if it can be.
func (d *structuredOpener) Close() error { return d.Of.Close() }

// Open opens the ValueDataset for one worker.
func (d *structuredOpener) Open(ctx context.Context) (any, error) {
	opened, err := d.Of.Of.Value.(Opener).Open(ctx)
	if of, ok := opened.(ValueDataset); ok && err == nil {
		return Structured(of), nil
	}
	return opened, err
}

// A structuredStream is a Stream of samples of any structure.
type structuredStream struct{ Of Any[ValueStream] }

// StructuredStream makes a Stream of a ValueStream; the result is both. For worker processes, the
// type of the ValueStream is registered by wire.RegisterType.
func StructuredStream(of ValueStream) Stream { return &structuredStream{Any[ValueStream]{of}} }

// Values yields the samples of a part.
func (s *structuredStream) Values(ctx context.Context, p Part) iter.Seq2[any, error] {
	return s.Of.Value.Values(ctx, p)
}

// Samples yields the tensors of the samples of a part.
func (s *structuredStream) Samples(ctx context.Context, p Part) iter.Seq2[Sample, error] {
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

// Value returns sample i of a Dataset: the value if ds is a ValueDataset, and a Sample otherwise.
func Value(ctx context.Context, ds Dataset, i int) (any, error) {
	if v, ok := ds.(ValueDataset); ok {
		return v.Value(ctx, i)
	}
	return ds.Get(ctx, i)
}

// hasValues reports whether the samples of a Dataset or a Stream are of any structure.
func hasValues(source any) bool {
	switch source.(type) {
	case ValueDataset, ValueStream:
		return true
	}
	return false
}

// valuesOf yields the samples of a part as their Stream makes them.
func valuesOf(ctx context.Context, s Stream, p Part) iter.Seq2[any, error] {
	if v, ok := s.(ValueStream); ok {
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
