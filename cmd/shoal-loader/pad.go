package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// padded is a data set of rows with lists of different lengths, which are padded to tensors when a
// batch is collated.
type padded struct {
	data.DatasetCloser
	how data.Ragged
}

// Value returns row i.
func (p padded) Value(ctx context.Context, i int) (any, error) {
	return data.Value(ctx, p.DatasetCloser, i)
}

var _ torch.Collator = padded{}

// Collate pads the lists of the samples as p.how describes and stacks them. A list of lists becomes
// a tensor with a dimension for each level, padded to the longest list of the batch at that level.
func (p padded) Collate(_ context.Context, samples []any) (any, error) {
	return data.DefaultCollate(p.unstackColumns(samples), p.how)
}

// unstackColumns returns the samples with lists in place of tensors of two and more dimensions:
// JSON lists of lists are tensors, if they have the same length within their row. It does so where
// the shapes differ, and in all columns with a mask or lengths, which have a dimension for each
// level in every batch.
func (p padded) unstackColumns(samples []any) []any {
	shapes, levels := map[string][]int{}, map[string]int{}
	eachColumn(samples, func(_ map[string]any, name string, t *tensor.Tensor) {
		first, known := shapes[name]
		rule, _ := p.how[name].(data.Pad)
		switch {
		case t.Numel() == 0 && t.Dims() == 1: // an empty list
		case rule.Mask != "" || rule.Lengths != "":
			levels[name] = max(levels[name], t.Dims()-1)
		case !known:
			shapes[name] = t.Shape()
		case len(first) == t.Dims():
			for i := 1; i < len(first); i++ {
				if first[i] != t.Dim(i) {
					levels[name] = max(levels[name], i)
				}
			}
		}
	})
	if len(levels) == 0 {
		return samples
	}
	out := make([]any, len(samples))
	for k, s := range samples {
		out[k] = s
		if row, ok := s.(map[string]any); ok {
			row = maps.Clone(row)
			for name, n := range levels {
				if t, ok := row[name].(*tensor.Tensor); ok {
					row[name] = unstack(t, n)
				}
			}
			out[k] = row
		}
	}
	return out
}

// unstack returns the parts of a tensor in its first dimension as a list, and so on for each
// level. The last dimension stays a tensor: the result is t if levels is 0 or t has fewer than
// two dimensions.
func unstack(t *tensor.Tensor, levels int) any {
	if levels == 0 || t.Dims() < 2 {
		return t
	}
	list := make([]any, t.Dim(0))
	for i := range list {
		list[i] = unstack(t.Select(0, i), levels-1)
	}
	return list
}

// CollateRows returns the samples with the tensors of their row of the batch that Collate makes.
// Python's default_collate then makes the same batch of them.
func (p padded) CollateRows(ctx context.Context, samples []any) ([]any, error) {
	batch, err := p.Collate(ctx, samples)
	if err != nil {
		return nil, err
	}
	rows := make([]any, len(samples))
	for i, s := range samples {
		rows[i] = batchRow(batch, s, i)
	}
	return rows, nil
}

// batchRow returns row i of a batch, which is a tensor or a map of columns: views of the batch's
// tensors, also for added columns, and all other values of the sample.
func batchRow(batch, sample any, i int) any {
	switch b := batch.(type) {
	case *tensor.Tensor:
		switch sample.(type) {
		case nil, *tensor.Tensor, []any:
			return b.Select(0, i)
		}
	case map[string]any:
		if fields, ok := sample.(map[string]any); ok {
			row := make(map[string]any, len(b))
			for name, column := range b {
				row[name] = batchRow(column, fields[name], i)
			}
			return row
		}
	}
	return sample
}

// eachColumn calls f for each tensor of each row, with the name of its column. It skips rows that
// are not dicts and columns that are not tensors.
func eachColumn(samples []any, f func(row map[string]any, name string, t *tensor.Tensor)) {
	for _, s := range samples {
		row, _ := s.(map[string]any)
		for name, v := range row {
			if t, ok := v.(*tensor.Tensor); ok {
				f(row, name, t)
			}
		}
	}
}

// A padding holds the pad options of one column.
type padding struct {
	Value    float64 `torch:"value"`
	Left     bool    `torch:"left"`
	Multiple int     `torch:"multiple"`
	Length   int     `torch:"length"`
	Mask     string  `torch:"mask"`
	Lengths  string  `torch:"lengths"`
}

// readRagged reads the option pad: a number for all columns, or a dict from columns to a number
// or a dict of [padding] options. It returns nil if the option is None. The error wraps
// [errOption].
func readRagged(option any) (data.Ragged, error) {
	columns, ok := option.(*python.Dict)
	if option == nil {
		return nil, nil
	}
	if !ok {
		rule, err := readPad("pad", option)
		return data.Ragged{"*": rule}, err
	}
	all := data.Ragged{}
	for k, v := range columns.All() {
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("%w pad: got column name %v, want a str", errOption, k)
		}
		rule, err := readPad(fmt.Sprintf("pad: %q", name), v)
		if err != nil {
			return nil, err
		}
		all[name] = rule
	}
	return all, nil
}

func readPad(option string, v any) (rule data.Pad, err error) {
	switch v := v.(type) {
	case int64:
		return data.Pad{Value: float64(v)}, nil
	case float64:
		return data.Pad{Value: v}, nil
	case *python.Dict:
		var p padding
		if err := (torch.Worker{Args: v}).Keywords(&p); err != nil {
			return rule, fmt.Errorf("%w %s: %w", errOption, option, err)
		}
		rule = data.Pad(p)
	default:
		return rule, fmt.Errorf("%w %s: got %T, want a number or a dict", errOption, option, v)
	}
	if rule.Length < 0 || rule.Multiple < 0 || rule.Multiple > 0 && rule.Length%rule.Multiple != 0 {
		return rule, fmt.Errorf(
			"%w %s: got length %d and multiple %d, want neither negative and length a multiple of multiple",
			errOption, option, rule.Length, rule.Multiple)
	}
	return rule, nil
}
