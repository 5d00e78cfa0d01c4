package torch

import (
	"maps"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Columns] Package tree makes a tensor of each number and each string of a sample, before
// it stacks them. For rows of a table that takes longer than to read them. A columnPlan
// therefore collates samples of common types directly: dicts and lists of tensors, numbers,
// bools and strings. It gives up on everything that is unusual or wrong. Package tree then
// decides, and has the errors.

// A columnPlan collects the tensors that a batch needs and the functions that fill them. The
// result is the batch of PyTorch's default_collate. The zero value is an empty plan, for one
// batch.
type columnPlan struct {
	fields []tree.Field
	fills  []func(to *tensor.Tensor)
}

// A columnBuilder returns the part of a batch that it was planned for. all are the allocated
// tensors of the batch, in the order of columnPlan.fields.
type columnBuilder func(all []*tensor.Tensor) any

// collateColumns collates samples, at least one. ok is false without an error if it has given
// up, and the caller must collate them with package tree. The caller must close the tensors of
// the batch.
func (w *loaderWorker) collateColumns(samples []any) (batch any, ok bool, err error) {
	var p columnPlan
	build, ok := p.plan(samples, false)
	if !ok {
		return nil, false, nil
	}
	all, err := w.batchMemory(p.fields)
	if err != nil {
		return nil, false, err
	}
	for k, fill := range p.fills {
		fill(all[k])
	}
	runtime.KeepAlive(samples)
	return build(all), true, nil
}

// plan plans the batch of one value of each sample, and returns the builder of that part. It
// returns false to give up on values that are unusual or differ in structure. inList reports
// that the values are items of lists.
func (p *columnPlan) plan(values []any, inList bool) (columnBuilder, bool) {
	switch first := values[0].(type) {
	case map[string]any:
		return p.planDict(values, slices.Sorted(maps.Keys(first)))
	case []any:
		return p.planList(values, len(first))
	case *tensor.Tensor:
		return p.planTensors(values, first)
	case int64:
		return planNumbers[int64](p, values, tensor.Int64)
	case float64:
		return planNumbers[float64](p, values, tensor.Float64)
	case bool:
		return planNumbers[bool](p, values, tensor.Bool)
	case string:
		return planTexts(values, inList)
	}
	return nil, false
}

func (p *columnPlan) planDict(values []any, keys []string) (columnBuilder, bool) {
	parts := make([]columnBuilder, len(keys))
	for i, key := range keys {
		column := make([]any, len(values))
		for row, v := range values {
			d, ok := v.(map[string]any)
			if ok && len(d) == len(keys) {
				column[row], ok = d[key]
			}
			if !ok || len(d) != len(keys) {
				return nil, false
			}
		}
		var ok bool
		if parts[i], ok = p.plan(column, false); !ok {
			return nil, false
		}
	}
	return func(all []*tensor.Tensor) any {
		d := new(python.Dict)
		for i, key := range keys {
			d.Set(key, parts[i](all))
		}
		return d
	}, len(keys) > 0
}

func (p *columnPlan) planList(values []any, n int) (columnBuilder, bool) {
	parts := make([]columnBuilder, n)
	for i := range parts {
		column := make([]any, len(values))
		for row, v := range values {
			list, ok := v.([]any)
			if !ok || len(list) != n {
				return nil, false
			}
			column[row] = list[i]
		}
		var ok bool
		if parts[i], ok = p.plan(column, true); !ok {
			return nil, false
		}
	}
	return func(all []*tensor.Tensor) any {
		list := make([]any, n)
		for i, part := range parts {
			list[i] = part(all)
		}
		return list
	}, n > 0
}

func (p *columnPlan) planTensors(values []any, first *tensor.Tensor) (columnBuilder, bool) {
	rows := make([]*tensor.Tensor, len(values))
	for row, v := range values {
		t, ok := v.(*tensor.Tensor)
		if !ok || t == nil || tree.IsClosed(t) || t.Device() != nil || !t.IsContiguous() {
			return nil, false
		}
		if t.DType() != first.DType() || !slices.Equal(t.Shape(), first.Shape()) {
			return nil, false
		}
		rows[row] = t
	}
	shape := append([]int{len(rows)}, first.Shape()...)
	return p.addField(first.DType(), shape, func(to *tensor.Tensor) {
		at := 0
		for _, t := range rows {
			at += copy(elementBytes(to)[at:], elementBytes(t))
		}
	}), true
}

// elementBytes returns the memory of the elements of a contiguous tensor on the host, or nil if
// it has no elements.
func elementBytes(t *tensor.Tensor) []byte {
	if t.Numel() == 0 {
		return nil
	}
	begin := t.Offset() * t.DType().Size()
	return t.Storage().Bytes()[begin:][:t.Nbytes()]
}

func planNumbers[T tensor.Elem](p *columnPlan, values []any, dt tensor.DType) (columnBuilder, bool) {
	numbers := make([]T, len(values))
	for row, v := range values {
		n, ok := v.(T)
		if !ok {
			return nil, false
		}
		numbers[row] = n
	}
	return p.addField(dt, []int{len(values)}, func(to *tensor.Tensor) { copy(tensor.Data[T](to), numbers) }), true
}

func planTexts(values []any, inList bool) (columnBuilder, bool) {
	texts := make([]string, len(values))
	for row, v := range values {
		text, ok := v.(string)
		if !ok {
			return nil, false
		}
		texts[row] = text
	}
	return func([]*tensor.Tensor) any { return sequence(texts, inList) }, true
}

// addField adds a tensor to the batch, which fill fills after its allocation. The returned builder
// returns this tensor.
func (p *columnPlan) addField(dt tensor.DType, shape []int, fill func(to *tensor.Tensor)) columnBuilder {
	k := len(p.fields)
	p.fields = append(p.fields, tree.Field{DType: dt, Shape: shape})
	p.fills = append(p.fills, func(to *tensor.Tensor) {
		fill(to)
		to.Touch()
	})
	return func(all []*tensor.Tensor) any { return all[k] }
}
