package torch

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
)

// A stack is a StackDataset: a sample combines one sample of each of its data sets, in a tuple,
// or in a dict if the data sets have names. openStack makes it. It may be used as its data sets
// may.
type stack struct {
	names []any // in the order of sets; nil for a tuple
	sets  []data.Dataset
}

// openStack opens a StackDataset and the data sets within it. The error wraps [ErrUnsupported]
// if there is none or they have different lengths.
func openStack(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
	k := new(stack)
	v, _ := attribute(r, "datasets")
	parts, ok := v.(*python.Dict)
	var list []any
	if ok {
		for name, part := range parts.All() {
			k.names, list = append(k.names, name), append(list, part)
		}
	} else {
		var err error
		if list, err = listAttribute(r, "datasets"); err != nil {
			return nil, err
		}
	}
	for _, part := range list {
		ds, err := s.openDataset(ctx, part)
		if err != nil {
			return nil, err
		}
		if len(k.sets) > 0 && ds.Len() != k.sets[0].Len() {
			return nil, unsupported("data sets of a StackDataset have %d and %d samples, want equal numbers",
				k.sets[0].Len(), ds.Len())
		}
		k.sets = append(k.sets, ds)
	}
	if len(k.sets) == 0 {
		return nil, unsupported("StackDataset has 0 data sets, want at least 1")
	}
	return data.Structured(k), nil
}

// Len returns the number of samples.
func (k *stack) Len() int { return k.sets[0].Len() }

// Value returns sample i of each data set, as a [python.Tuple] or a *[python.Dict].
func (k *stack) Value(ctx context.Context, i int) (any, error) {
	parts := make(python.Tuple, len(k.sets))
	for n, ds := range k.sets {
		v, err := data.Value(ctx, ds, i)
		if err != nil {
			return nil, fmt.Errorf("data set %d of a StackDataset: %w", n, err)
		}
		if s, ok := v.(data.Sample); ok {
			v = tupleOf(s)
		}
		parts[n] = v
	}
	if k.names == nil {
		return parts, nil
	}
	d := new(python.Dict)
	for n, name := range k.names {
		if err := d.Set(name, parts[n]); err != nil {
			return nil, err
		}
	}
	return d, nil
}
