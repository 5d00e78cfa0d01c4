package data

import (
	"context"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/tree"
)

// BatchesOf yields the batches of the next epoch of l, as [Loader.Batches] does, converted to B.
// For samples that are structs, B is a struct with fields of the same names: tensors for
// tensors, numbers and bools, []string for strings, [NestedRows] for [Nested] fields, and slices
// for slices. With any as B or as a field, maps are map[string]any and lists are []any. For
// plain samples a batch is a list of tensors, and B must be [Batch] or a struct tagged as a
// tuple.
//
// With BatchSize [Single], numbers and strings stay numbers and strings. To load a particular
// epoch, call l.Resume(State{Seed: seed, Epoch: epoch}) first. The consumer should close the
// tensors of each batch. A batch that does not fit B, for example because B lacks one of its
// fields, ends the sequence with an error. Other errors are as with [Loader.Epoch].
func BatchesOf[B any](ctx context.Context, l *Loader) iter.Seq2[B, error] {
	epoch := int(l.epochs.Add(1) - 1)
	return func(yield func(B, error) bool) {
		l.each(ctx, epoch, func(s *batchState, err error) bool {
			var b, none B
			if err != nil {
				return yield(none, err)
			}
			if err := s.structuredBatch().Into(&b); err != nil {
				closeAll(s.batch)
				yield(none, fmt.Errorf("data: convert batch to %T: %w", &b, err))
				return false
			}
			return yield(b, nil)
		})
	}
}

// structuredBatch returns the tensors of the batch, not copied, together with the description of
// its structure. A plain batch becomes a list of tensors.
func (s *batchState) structuredBatch() tree.Value {
	spec := s.spec
	if spec == "" {
		spec = tree.Tensors(len(s.batch))
	}
	return tree.Value{Spec: spec, Tensors: s.batch}
}
