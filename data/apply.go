package data

import (
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// gatherRows calls g.Gather to write sample indices[k] to row k of into. If there is a
// Transform, the first field is written to scratch memory and then transformed into the batch.
// The error is one of Get or Gather, or wraps [ErrShape] if the Transform changes the layout.
func (w *worker) gatherRows(g Gatherer, indices []int, into Batch) error {
	if w.transform == nil {
		defer w.recordSpan("fetch", w.track.Now())
		return g.Gather(w.ctx, indices, into)
	}
	begin := w.track.Now()
	raw, err := w.allocateRaw(indices)
	if err != nil {
		return err
	}
	defer raw.Close()
	parts := slices.Clone(into)
	parts[0] = raw
	err = g.Gather(w.ctx, indices, parts)
	if w.recordSpan("fetch", begin); err != nil {
		w.scratch = nil // the next samples may have another layout
		return err
	}
	return w.applyTransform(into[0], raw)
}

// allocateRaw returns scratch memory for the first fields of the samples before the Transform.
// The caller must close the tensor. To learn the layout, the first call, and the first one after
// a failed Gather, load sample indices[0] and return its error.
func (w *worker) allocateRaw(indices []int) (*tensor.Tensor, error) {
	n := len(indices)
	if w.scratch == nil {
		w.current.setSample(indices[0])
		s, err := w.ds.Get(w.ctx, indices[0])
		if err != nil {
			return nil, err
		}
		w.scratch = s[0].NewEmpty(s[0].DType(), slices.Insert(s[0].Shape(), 0, n)...)
	}
	if w.scratch.Dim(0) < n {
		w.scratch = w.scratch.NewEmpty(w.scratch.DType(), slices.Insert(w.scratch.Shape()[1:], 0, n)...)
	}
	return w.scratch.Narrow(0, 0, n), nil
}

// applyTransform writes the Transform of src to dst. It returns an error that wraps [ErrShape] if
// the result has another dtype or shape than dst.
func (w *worker) applyTransform(dst, src *tensor.Tensor) error {
	defer w.recordSpan("transform", w.track.Now())
	out := w.transform.Apply(dst, src)
	if out == dst {
		return nil
	}
	if out.DType() != dst.DType() || !slices.Equal(out.Shape(), dst.Shape()) {
		return fmt.Errorf("%w: transform returned shape %v of %v, want shape %v of %v as for the first sample of "+
			"the batch",
			ErrShape, out.Shape(), out.DType(), dst.Shape(), dst.DType())
	}
	dst.CopyFrom(out)
	return nil
}

// transformFirst replaces the first tensor of a sample by the result of the Transform. In a
// structured sample, tensors made from numbers or strings do not count. The error wraps
// [ErrSample] if there is no tensor, or if the Transform returns nil or a closed tensor.
func (w *worker) transformFirst(s *sample) error {
	at := 0
	if s.spec != "" {
		n, err := tree.Parse(s.spec)
		if err != nil {
			return err
		}
		if at = n.First(); at < 0 {
			return fmt.Errorf("%w: no tensor for the Transform", ErrSample)
		}
	}
	s.Sample = slices.Clone(s.Sample)
	defer w.recordSpan("transform", w.track.Now())
	s.Sample[at] = w.transform.Apply(nil, s.Sample[at])
	return s.checkValid()
}
