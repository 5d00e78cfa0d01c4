package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// padded are rows whose lists of numbers have different lengths, and become tensors in a batch.
type padded struct {
	data.DatasetCloser
	how data.Ragged
}

// Value returns a row.
func (p padded) Value(ctx context.Context, i int) (any, error) {
	return data.Value(ctx, p.DatasetCloser, i)
}

var _ torch.Collator = padded{}

// Collate pads.
func (p padded) Collate(_ context.Context, samples []any) (any, error) {
	kinds := map[string]tensor.DType{}
	eachColumn(samples, func(_ map[string]any, name string, t *tensor.Tensor) {
		if t.Numel() > 0 {
			kinds[name] = t.DType()
		}
	})
	eachColumn(samples, func(row map[string]any, name string, t *tensor.Tensor) {
		if dt, known := kinds[name]; known && t.Numel() == 0 && t.Dims() == 1 { // an empty list is of no type
			row[name] = tensor.Empty(dt, 0)
		}
	})
	return data.DefaultCollate(samples, p.how)
}

// eachColumn calls f with the columns of rows that are tensors.
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

// A padding is what an option says of a column.
type padding struct {
	Value    float64 `torch:"value"`
	Left     bool    `torch:"left"`
	Multiple int     `torch:"multiple"`
	Length   int     `torch:"length"`
	Mask     string  `torch:"mask"`
	Lengths  string  `torch:"lengths"`
}

// ragged reads the option pad: a number for all columns, or a dict of columns, with a number or a
// dict each.
func ragged(option any) (data.Ragged, error) {
	columns, ok := option.(*python.Dict)
	if option == nil {
		return nil, nil
	}
	if !ok {
		rule, err := pad("pad", option)
		return data.Ragged{"*": rule}, err
	}
	all := data.Ragged{}
	for k, v := range columns.All() {
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("%w pad: the name %v is no str", errOption, k)
		}
		rule, err := pad(fmt.Sprintf("pad: %q", name), v)
		if err != nil {
			return nil, err
		}
		all[name] = rule
	}
	return all, nil
}

func pad(option string, v any) (rule data.Pad, err error) {
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
		return rule, fmt.Errorf("%w %s is %T, and neither a number nor a dict", errOption, option, v)
	}
	if rule.Length < 0 || rule.Multiple < 0 || rule.Multiple > 0 && rule.Length%rule.Multiple != 0 {
		return rule, fmt.Errorf(
			"%w %s: length is %d and multiple %d; neither is negative, and length is a multiple of multiple",
			errOption, option, rule.Length, rule.Multiple)
	}
	return rule, nil
}
