package data

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A slot is the memory in which one batch at a time is made.
type slot struct {
	rows        Batch          // of BatchSize rows each; nil until the first sample has told dtypes and shapes
	transformed *tensor.Tensor // what Transform made of the last whole batch

	indices []int // the job: which samples
	batch   Batch // its outcome, for the consumer once ready
	err     error
	ready   chan struct{} // holds one token
}

// load makes the batch of the samples indices.
func (l *Loader) load(ctx context.Context, s *slot, indices []int) (Batch, error) {
	switch {
	case l.closed.Err() != nil: // the cancelling of ctx may still be under way
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	first, err := l.get(ctx, indices[0])
	if err != nil {
		return nil, err
	}
	into, err := l.buffers(s, first, len(indices))
	if err != nil {
		return nil, err
	}
	if err := l.fill(ctx, into, first, indices); err != nil {
		l.drop(into)
		return nil, err
	}
	return l.transform(s, into)
}

func (l *Loader) get(ctx context.Context, i int) (Sample, error) {
	s, err := l.ds.Get(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("load sample %d: %w", i, err)
	}
	return s, nil
}

// fill writes the samples to the rows of into. first is the first of them.
func (l *Loader) fill(ctx context.Context, into Batch, first Sample, indices []int) error {
	if g, ok := l.ds.(Gatherer); ok {
		if err := g.Gather(ctx, indices, into); err != nil {
			return fmt.Errorf("load samples %d … %d: %w", indices[0], indices[len(indices)-1], err)
		}
		return nil
	}
	sample := first
	for row, i := range indices {
		if row > 0 {
			var err error
			if sample, err = l.get(ctx, i); err != nil {
				return err
			}
		}
		if err := put(into, row, sample); err != nil {
			return fmt.Errorf("load sample %d: %w", i, err)
		}
	}
	return nil
}

// put copies a sample to a row of a batch.
func put(into Batch, row int, s Sample) error {
	if len(s) != len(into) {
		return fmt.Errorf("%w: %d fields, where the first sample of the batch has %d", ErrShape, len(s), len(into))
	}
	for k, t := range s {
		if t.DType() != into[k].DType() || !slices.Equal(t.Shape(), into[k].Shape()[1:]) {
			return fmt.Errorf("%w: field %d is %v of %v, and of the first sample of the batch %v of %v",
				ErrShape, k, t.Shape(), t.DType(), into[k].Shape()[1:], into[k].DType())
		}
		to := into[k].Select(0, row)
		to.CopyFrom(t)
		if err := to.Close(); err != nil {
			return err
		}
	}
	return nil
}

// own reports whether field k of a batch is made in shared memory at once. The first is moved there after its Transform.
func (l *Loader) own(k int) bool { return l.opts.Shared && (k > 0 || l.opts.Transform == nil) }

// buffers returns tensors of n rows for samples like first.
func (l *Loader) buffers(s *slot, first Sample, n int) (Batch, error) {
	if s.rows == nil {
		s.rows = make(Batch, len(first))
	}
	into := make(Batch, len(first))
	for k, t := range first {
		if l.own(k) {
			shared, err := tensor.EmptyShared(t.DType(), append([]int{n}, t.Shape()...)...)
			if err != nil {
				l.drop(into)
				return nil, fmt.Errorf("make a batch in shared memory: %w", err)
			}
			into[k] = shared
			continue
		}
		if s.rows[k] == nil {
			s.rows[k] = tensor.Empty(t.DType(), append([]int{l.opts.BatchSize}, t.Shape()...)...)
		}
		into[k] = s.rows[k]
		if n < l.opts.BatchSize {
			into[k] = s.rows[k].Narrow(0, 0, n)
		}
	}
	return into, nil
}

// transform makes of the collated rows what the consumer gets.
func (l *Loader) transform(s *slot, into Batch) (Batch, error) {
	if l.opts.Transform == nil {
		return into, nil
	}
	images := l.opts.Transform(s.transformed, into[0])
	if !l.opts.Shared {
		if images.Dim(0) == l.opts.BatchSize { // a smaller last batch does not take the place of the buffer
			s.transformed = images
		}
		into[0] = images
		return into, nil
	}
	if images.SameStorage(s.rows[0]) { // a Transform that changes nothing; the buffer stays here
		images = images.Clone()
	}
	if err := images.Share(); err != nil {
		into[0] = nil
		closeAll(into)
		return nil, fmt.Errorf("make a batch in shared memory: %w", err)
	}
	into[0] = images
	return into, nil
}

// drop closes those tensors of a batch that nobody gets and that are in shared memory.
func (l *Loader) drop(b Batch) {
	for k, t := range b {
		if l.own(k) && t != nil {
			t.Close()
		}
	}
}

func closeAll(b Batch) {
	for _, t := range b {
		if t != nil {
			t.Close()
		}
	}
}
