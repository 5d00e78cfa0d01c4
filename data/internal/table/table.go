package table

import (
	"fmt"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/tensor"
)

// Pick returns the given columns of a row, or all of them if columns is empty. A column with a
// DType becomes a tensor. Numbers in r must be bool, int64 or float64, and lists must be []any,
// []int64, []float64 or tensors. The error wraps [row.ErrColumn] or [row.ErrKind] and names the
// column.
func Pick(columns []row.Column, r map[string]any) (map[string]any, error) {
	picked := make(map[string]any, len(r))
	if len(columns) == 0 {
		for name, v := range r {
			picked[name] = v
		}
		return picked, nil
	}
	for _, column := range columns {
		v, ok := r[column.Name]
		if !ok {
			return nil, fmt.Errorf("%w: %q, want one of %q", row.ErrColumn, column.Name, slices.Sorted(maps.Keys(r)))
		}
		var err error
		if picked[column.Name], err = valueOf(column, v); err != nil {
			return nil, fmt.Errorf("column %q: %w", column.Name, err)
		}
	}
	return picked, nil
}

// valueOf converts a value to the DType of its column, if it has one, and otherwise returns v. It
// returns an error that wraps [row.ErrKind] if v does not consist of numbers.
func valueOf(c row.Column, v any) (any, error) {
	if c.DType == nil {
		return v, nil
	}
	if t, ok := v.(*tensor.Tensor); ok {
		return t.To(*c.DType), nil
	}
	var l lattice
	if !l.addItem(v, 0) {
		return nil, fmt.Errorf("%w: cannot convert %T to a tensor of %v", row.ErrKind, v, *c.DType)
	}
	return l.toTensor().To(*c.DType), nil
}

// Sample returns the given columns of a row as the fields of a data.Sample, in the order of
// columns, or sorted by name if columns is empty. A tensor in r that needs no conversion is
// returned itself. The error wraps [row.ErrColumn] if r lacks a column, or [row.ErrKind] if the
// value of a column does not consist of numbers.
func Sample(columns []row.Column, r map[string]any) ([]*tensor.Tensor, error) {
	picked, err := Pick(columns, r)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(picked))
	if len(columns) > 0 {
		names = names[:0]
		for _, column := range columns {
			names = append(names, column.Name)
		}
	}
	sample := make([]*tensor.Tensor, len(names))
	for k, name := range names {
		var l lattice
		switch v := picked[name].(type) {
		case *tensor.Tensor:
			sample[k] = v
		default:
			if !l.addItem(v, 0) {
				return nil, fmt.Errorf(
					"column %q: %w: got %T, want a tensor or a number: list the columns to read", name, row.ErrKind, v)
			}
			sample[k] = l.toTensor()
		}
	}
	return sample, nil
}
