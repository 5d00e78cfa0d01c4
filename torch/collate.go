package torch

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// A Collate makes a batch of samples in Go if the script has a collate_fn of that name. A sample is
// the data set's result: the value of a data.ValueDataset, or a data.Sample. The batch is any value
// that Conn.Send takes. data.DefaultCollate makes the batch that PyTorch's default_collate would
// make, and pads ragged rows by its rules.
type Collate func(ctx context.Context, samples []any) (batch any, err error)

// A Collator is a data set that makes its batches itself if the DataLoader has no collate_fn of its
// own. A data set whose rows are padded is one. With batch_size=None its samples stay samples. If a
// data set is made of several, the first Collator among them makes the batches.
type Collator interface {
	Collate(ctx context.Context, samples []any) (batch any, err error)
}

// These are the ways of a worker to make batches, by the name of the DataLoader's collate_fn.
const (
	defaultCollate = "torch.utils.data._utils.collate.default_collate"
	defaultConvert = "torch.utils.data._utils.collate.default_convert" // the collate_fn of batch_size=None
)

// needsPython names the part of a DataLoader's arguments that is Python code without a counterpart
// in Go. It returns "" if there is none. See Note [Samples for Python].
func (c Child) needsPython(args python.Tuple) string {
	if len(args) <= argInit {
		return ""
	}
	if init := args[argInit]; init != nil {
		return "the worker_init_fn " + functionName(init)
	}
	name, batches := functionName(args[argCollate]), args[argAutoCollate] == true
	if name == defaultCollate && batches || name == defaultConvert && !batches || c.Collates[name] != nil {
		return ""
	}
	return "the collate_fn " + name
}

// functionName returns the name of a function of Python's. For an object that is called it returns
// the name of its class.
func functionName(v any) string {
	switch v := v.(type) {
	case python.Global:
		return v.String()
	case *pickle.Object:
		return v.Class.String()
	case *python.Record:
		return v.Class.String()
	}
	return fmt.Sprintf("%T", v)
}

// values loads samples as the data set makes them.
func (w *loaderWorker) values(ctx context.Context, ds data.Dataset, numbers []int) ([]any, error) {
	all := make([]any, len(numbers))
	for k, i := range numbers {
		v, err := data.Value(w.at(ctx, i), ds, i)
		if err != nil {
			return nil, fmt.Errorf("load sample %d: %w", i, err)
		}
		all[k] = v
	}
	return all, nil
}

// made makes the batch that the script would have had from its collate_fn. numbers are the numbers
// of the samples, or nil. single says that there is one sample, which becomes no batch.
func (w *loaderWorker) made(ctx context.Context, samples []any, numbers []int, single bool) (any, error) {
	if w.raw {
		return forPython(samples, numbers)
	}
	if w.own != nil {
		batch, err := w.own(ctx, samples)
		if err != nil {
			return nil, fmt.Errorf("the Collate %s: %w", w.ownName, err)
		}
		return batch, nil
	}
	if w.collator != nil && !single {
		return w.collator.Collate(ctx, samples)
	}
	if w.columns != nil && !w.collate && !single {
		v, err := w.columns(samples)
		if err != nil {
			return nil, err
		}
		samples, single = []any{v}, true
	}
	flat := make([]tree.Value, len(samples))
	for k, v := range samples {
		f, err := tree.Flatten(v, tree.Rules{})
		if err != nil {
			return nil, ofSample(k, numbers, err)
		}
		flat[k] = f
	}
	if single {
		return w.converted(flat[0])
	}
	batch, err := tree.Collate(flat, tree.Rules{}, w.batchMemory)
	if row := (*tree.RowError)(nil); errors.As(err, &row) {
		return nil, ofSample(row.Row, numbers, row.Err)
	}
	if err != nil {
		return nil, err
	}
	return asPython(batch, false)
}

// ofSample names the sample in an error.
func ofSample(k int, numbers []int, err error) error {
	if numbers != nil {
		return fmt.Errorf("sample %d: %w", numbers[k], err)
	}
	return fmt.Errorf("sample %d of a batch: %w", k, err)
}

// converted makes what default_convert makes: tensors of its own, and all other values unchanged.
func (w *loaderWorker) converted(v tree.Value) (any, error) {
	n, err := tree.Parse(v.Spec)
	if err != nil {
		return nil, err
	}
	at := 0
	n.Leaves(func(leaf *tree.Node) {
		if t := v.Tensors; leaf.Kind == tree.Tensor && err == nil {
			t[at], err = ownTensor(t[at], w.script.strategy())
		}
		at += leaf.Kind.Tensors()
	})
	if err != nil {
		return nil, err
	}
	return asPython(v, false)
}

// ownTensor copies a tensor to memory that PyTorch can map.
func ownTensor(t *tensor.Tensor, how Strategy) (*tensor.Tensor, error) {
	own, err := Options{Strategy: how}.Empty(t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	return own.CopyFrom(t), nil
}

// asPython makes a value of Python's types. Tuples become lists unless tuples are to stay, as
// default_collate and default_convert make them. The strings of a batch become a tuple if they were
// in a list, because default_collate transposes a list by zip.
func asPython(v tree.Value, tuples bool) (any, error) {
	n, err := tree.Parse(v.Spec)
	if err != nil {
		return nil, err
	}
	rest := v.Tensors
	return pythonOf(n, &rest, tuples, false)
}

func pythonOf(n *tree.Node, rest *[]*tensor.Tensor, tuples, inList bool) (any, error) {
	switch n.Kind {
	case tree.Map:
		d := new(python.Dict)
		for i, k := range n.Keys {
			v, err := pythonOf(n.Items[i], rest, tuples, false)
			if err == nil {
				err = d.Set(k, v)
			}
			if err != nil {
				return nil, err
			}
		}
		return d, nil
	case tree.List, tree.Tuple:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			v, err := pythonOf(item, rest, tuples, true)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		if tuples && n.Kind == tree.Tuple {
			return python.Tuple(list), nil
		}
		return list, nil
	}
	count := n.Kind.Tensors()
	leaf, err := tree.Leaf(n.Kind, (*rest)[:count])
	*rest = (*rest)[count:]
	switch list := leaf.(type) {
	case []string:
		return sequence(list, inList), err
	case [][]byte:
		return sequence(list, inList), err
	}
	return leaf, err
}

func sequence[T any](items []T, tuple bool) any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	if tuple {
		return python.Tuple(list)
	}
	return list
}
