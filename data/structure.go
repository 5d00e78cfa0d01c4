package data

import (
	"context"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/tree"
)

// A ValueDataset is a set of structured samples with random access by index. A sample may consist
// of tensors, numbers, bools, strings, []byte, and slices, arrays, maps and structs of these, as in
// torch's default_collate. [Structured] makes a [Dataset] of it. A tag `data:"name"` renames a
// field of a struct, "-" omits it, and a field _ with the tag `data:",tuple"` makes the struct a
// list.
//
// In a batch, tensors are stacked, numbers become one Int64 or Float64 tensor, bools become one
// Bool tensor, strings become a []string, and maps and lists become maps and lists of these. All
// samples of a batch must have the same keys and the same number of items; otherwise a
// [SampleError] names the path. [BatchesOf] returns batches as Go types.
type ValueDataset interface {
	Len() int
	Value(ctx context.Context, i int) (any, error)
}

// A ValueStream is a [Stream] of structured samples, as in a [ValueDataset]. [StructuredStream]
// makes a Stream of it.
type ValueStream interface {
	Values(ctx context.Context, p Part) iter.Seq2[any, error]
}

func init() {
	codec.RegisterType[*structuredDataset]("data.StructuredDataset")
	codec.RegisterType[*structuredOpener]("data.structuredOpener")
	codec.RegisterType[*structuredStream]("data.StructuredStream")
}

// A structuredDataset is the [Dataset] of a [ValueDataset].
type structuredDataset struct{ Of Any[ValueDataset] }

// Structured makes a [Dataset] of a [ValueDataset]. The result implements both: Value returns the
// value, and Get returns its tensors in the order of the structure, with numbers and strings
// converted to tensors. If the ValueDataset is an [Opener], so is the result. Close closes the
// ValueDataset if it has a Close method. To use worker processes, the type of the ValueDataset must
// be registered with wire.RegisterType.
func Structured(of ValueDataset) DatasetCloser {
	d := structuredDataset{Any[ValueDataset]{of}}
	if _, ok := of.(Opener); ok {
		return &structuredOpener{d}
	}
	return &d
}

// Structs returns a [Dataset] of n samples of type T, usually a struct, that get returns. Workers
// must be goroutines, because a function cannot be sent to processes.
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

// Value returns sample i.
func (d *structuredDataset) Value(ctx context.Context, i int) (any, error) {
	return d.Of.Value.Value(ctx, i)
}

// Get returns the tensors of sample i.
func (d *structuredDataset) Get(ctx context.Context, i int) (Sample, error) {
	v, err := d.Value(ctx, i)
	if err != nil {
		return nil, err
	}
	return flattenSample(v)
}

func flattenSample(v any) (Sample, error) {
	flat, err := tree.Flatten(v, tree.Rules{})
	if err != nil {
		return nil, notASample(err)
	}
	return flat.Tensors, nil
}

// Close closes the [ValueDataset] if it has a Close method.
func (d *structuredDataset) Close() error {
	if c, ok := d.Of.Value.(interface{ Close() error }); ok {
		return c.Close()
	}
	return nil
}

// A structuredOpener is a structuredDataset of a [ValueDataset] that is an [Opener].
type structuredOpener struct{ Of structuredDataset }

// Len returns the number of samples.
func (d *structuredOpener) Len() int { return d.Of.Len() }

// Value returns sample i.
func (d *structuredOpener) Value(ctx context.Context, i int) (any, error) { return d.Of.Value(ctx, i) }

// Get returns the tensors of sample i.
func (d *structuredOpener) Get(ctx context.Context, i int) (Sample, error) { return d.Of.Get(ctx, i) }

// Close closes the [ValueDataset] if it has a Close method.
func (d *structuredOpener) Close() error { return d.Of.Close() }

// Open opens the [ValueDataset] for one worker.
func (d *structuredOpener) Open(ctx context.Context) (any, error) {
	opened, err := d.Of.Of.Value.(Opener).Open(ctx)
	if of, ok := opened.(ValueDataset); ok && err == nil {
		return Structured(of), nil
	}
	return opened, err
}

// A structuredStream is the [Stream] of a [ValueStream].
type structuredStream struct{ Of Any[ValueStream] }

// StructuredStream makes a [Stream] of a [ValueStream]. The result implements both. To use worker
// processes, the type of the ValueStream must be registered with wire.RegisterType.
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
				sample, err = flattenSample(v)
			}
			if !yield(sample, err) {
				return
			}
		}
	}
}

// Value returns sample i of a [Dataset]: a value if ds is a [ValueDataset], and a [Sample]
// otherwise.
func Value(ctx context.Context, ds Dataset, i int) (any, error) {
	if v, ok := ds.(ValueDataset); ok {
		return v.Value(ctx, i)
	}
	return ds.Get(ctx, i)
}

// hasValues reports whether a Dataset or a Stream has structured samples.
func hasValues(source any) bool {
	switch source.(type) {
	case ValueDataset, ValueStream:
		return true
	}
	return false
}

// valuesOf yields the samples of a part: values of a [ValueStream], or Samples of other Streams.
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
