package row

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// What may be wrong with a row.
var (
	// ErrColumn is wrapped where a row has no such column.
	ErrColumn = errors.New("row: no such column")
	// ErrKind is wrapped where a column has not what it should have.
	ErrKind = errors.New("row: not of this kind")
)

// A Column is one that is wanted.
type Column struct {
	Name  string
	DType *tensor.DType // of the tensors of its numbers, new(tensor.Int64); nil leaves them as they are
}

// Columns are those that are wanted, in their order. None stand for all that a row has.
type Columns []Column

// Pick returns the columns of a row, those with a DType as tensors. Numbers are bool, int64 and
// float64, and lists are []any, or tensors already. The error wraps ErrColumn or ErrKind and names
// the column.
func (c Columns) Pick(row map[string]any) (map[string]any, error) {
	picked := make(map[string]any, len(row))
	if len(c) == 0 {
		for name, v := range row {
			picked[name] = v
		}
		return picked, nil
	}
	for _, column := range c {
		v, ok := row[column.Name]
		if !ok {
			return nil, fmt.Errorf("%w: %q; it has %q", ErrColumn, column.Name, slices.Sorted(maps.Keys(row)))
		}
		var err error
		if picked[column.Name], err = column.of(v); err != nil {
			return nil, fmt.Errorf("column %q: %w", column.Name, err)
		}
	}
	return picked, nil
}

// of returns a value of the column.
func (c Column) of(v any) (any, error) {
	if c.DType == nil {
		return v, nil
	}
	if t, ok := v.(*tensor.Tensor); ok {
		return t.To(*c.DType), nil
	}
	var l lattice
	if !l.add(v, 0) {
		return nil, fmt.Errorf("%w: %T is to become a tensor of %v", ErrKind, v, *c.DType)
	}
	return l.tensor().To(*c.DType), nil
}

// Sample returns the columns of a row as the fields of a data.Sample, in their order or, if none
// are named, in that of their names. The error wraps ErrKind where one has no numbers.
func (c Columns) Sample(row map[string]any) ([]*tensor.Tensor, error) {
	picked, err := c.Pick(row)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(picked))
	if len(c) > 0 {
		names = names[:0]
		for _, column := range c {
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
			if !l.add(v, 0) {
				return nil, fmt.Errorf(
					"column %q: %w: %T is no tensor and no number; name the columns that are", name, ErrKind, v)
			}
			sample[k] = l.tensor()
		}
	}
	return sample, nil
}
