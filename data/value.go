package data

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// A sample is the input of batching in a worker: the tensors of a plain [Sample], or the tensors
// and the structure of a value.
type sample struct {
	Sample
	spec  string // structure of a value; empty for a plain Sample
	value any    // input of a Collate of values
}

// isFixed reports whether samples of the structure like can be written to rows of preallocated
// tensors. It is false if like is invalid.
func isFixed(like string) bool {
	n, err := tree.Parse(like)
	return err == nil && n.Fixed()
}

// stackValues is [stack] for structured samples. It also returns the description of the batch's
// structure.
func stackValues(samples []sample, rules tree.Rules, shared bool) (Batch, string, error) {
	all := make([]tree.Value, len(samples))
	for k, s := range samples {
		all[k] = tree.Value{Spec: s.spec, Tensors: s.Sample}
	}
	v, err := tree.Collate(all, rules, func(fields []tree.Field) ([]*tensor.Tensor,
		error) {
		return allocateBlock(fields, shared)
	})
	if err != nil {
		return nil, "", shapeError(err)
	}
	return v.Tensors, v.Spec, nil
}

// allocateBlock allocates the tensors of a batch, with the given dtypes and shapes, in one block
// of memory, which is shared memory if shared is set. The caller must close them.
func allocateBlock(fields []tree.Field, shared bool) ([]*tensor.Tensor, error) {
	lay := make(layout, len(fields))
	for k, f := range fields {
		lay[k] = field{f.DType, f.Shape, f.Device}
	}
	f, err := newBatchBuffer(lay, single, shared)
	if err != nil {
		return nil, err
	}
	return f.batch, nil
}

// shapeError wraps errors of package tree in [ErrShape] or [ErrSample], and keeps the row of a
// [tree.RowError]. It returns other errors unchanged.
func shapeError(err error) error {
	if row := (*tree.RowError)(nil); errors.As(err, &row) {
		return &tree.RowError{Row: row.Row, Err: shapeError(row.Err)}
	}
	switch {
	case errors.Is(err, tree.ErrShape):
		return &flaw{ErrShape, err}
	case errors.Is(err, tree.ErrValue):
		return notASample(err)
	}
	return err
}

func notASample(err error) error { return &flaw{ErrSample, err} }

// A flaw wraps err and a sentinel error kind. Its text is the text of err alone.
type flaw struct{ kind, err error }

func (e *flaw) Error() string { return e.err.Error() }

func (e *flaw) Unwrap() []error { return []error{e.kind, e.err} }
