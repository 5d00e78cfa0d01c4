package torch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
)

// A Collate makes a batch from samples. It replaces the collate_fn of the same name in a script;
// see [Child.Collates]. A sample is the value of a [data.ValueDataset], or a [data.Sample]. The
// batch may be any value that [Conn.Send] accepts. [data.DefaultCollate] makes the batch that
// PyTorch's default_collate would make, and can pad ragged rows.
type Collate func(ctx context.Context, samples []any) (batch any, err error)

// A Collator is a data set that collates its own batches, for example one with padded rows. The
// worker calls Collate if the DataLoader has no collate_fn of its own. A single sample, as
// requested with batch_size=None, is not collated. If a data set consists of several, the first
// Collator among them is used.
type Collator interface {
	Collate(ctx context.Context, samples []any) (batch any, err error)
}

// A rowCollator is a [Collator] with batches that Python can collate, too. CollateRows returns
// the rows of the batch that Collate would make, one for each sample.
type rowCollator interface {
	CollateRows(ctx context.Context, samples []any) (rows []any, err error)
}

// These are PyTorch's own collate functions, which Go implements:
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/utils/data/_utils/collate.py.
const (
	defaultCollate = "torch.utils.data._utils.collate.default_collate"
	defaultConvert = "torch.utils.data._utils.collate.default_convert" // used with batch_size=None
)

// needsPython returns a description of the collate_fn or worker_init_fn among the arguments of a
// DataLoader worker if it is Python code without a Go implementation, or "" if there is none.
// See Note [Samples for Python].
func (c Child) needsPython(args python.Tuple) string {
	if len(args) <= argInit {
		return ""
	}
	if init := functionName(withoutPartial(args[argInit])); args[argInit] != nil && !seedFunctions[init] {
		return "the worker_init_fn " + init
	}
	name, batches := functionName(args[argCollate]), args[argAutoCollate] == true
	if name == defaultCollate && batches || name == defaultConvert && !batches || c.Collates[name] != nil {
		return ""
	}
	return "the collate_fn " + name
}

// seedFunctions are functions of libraries that only seed the random number generators of Python,
// numpy and PyTorch, which Go does not use. A Go worker omits them as a worker_init_fn.
var seedFunctions = map[string]bool{
	// https://github.com/Lightning-AI/pytorch-lightning/blob/2.5.0/src/lightning/fabric/utilities/seed.py
	"lightning.fabric.utilities.seed.pl_worker_init_function": true,
	"lightning_fabric.utilities.seed.pl_worker_init_function": true,
	// https://github.com/huggingface/transformers/blob/v4.57.0/src/transformers/trainer_utils.py
	"transformers.trainer_utils.seed_worker": true,
}

// partialClass is the class of a function with some of its arguments, and rebuildPartial the
// function by which the pickles of package multiprocessing make one. See
// https://github.com/python/cpython/blob/v3.14.0/Lib/multiprocessing/reduction.py.
var (
	partialClass   = named("functools.partial")
	rebuildPartial = named("multiprocessing.reduction._rebuild_partial")
)

// withoutPartial returns the function of a functools.partial, or v if it is another value.
func withoutPartial(v any) any {
	var class python.Global
	var args python.Tuple
	switch v := v.(type) {
	case *pickle.Object:
		class, args = v.Class, v.Args
	case *python.Record:
		class, args = v.Class, v.Args
	}
	if len(args) > 0 && (class == partialClass || class == rebuildPartial) {
		return args[0]
	}
	return v
}

// functionName returns the qualified name of a Python function, or of the class of a callable
// object. For any other value it returns the Go type.
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

// loadValues loads the samples with the given indices as values of any structure, in that order.
func (w *loaderWorker) loadValues(ctx context.Context, ds data.Dataset, numbers []int) ([]any, error) {
	all := make([]any, len(numbers))
	for k, i := range numbers {
		v, err := data.Value(w.sampleContext(ctx, i), ds, i)
		if err != nil {
			return nil, fmt.Errorf("load sample %d: %w", i, err)
		}
		all[k] = v
	}
	return all, nil
}

// collateSamples collates samples as the script's collate_fn would. numbers are the indices of
// the samples for errors, or nil for a stream. single means one sample that is not collated. The
// caller must close the result with [CloseAll].
func (w *loaderWorker) collateSamples(ctx context.Context, samples []any, numbers []int, single bool) (any, error) {
	if w.raw {
		if c, ok := w.collator.(rowCollator); ok && w.rows {
			var err error
			if samples, err = c.CollateRows(ctx, samples); err != nil {
				return nil, err
			}
		}
		return samplesToPython(w.withLabels(samples), numbers)
	}
	if w.own != nil {
		batch, err := w.own(ctx, samples)
		if err != nil {
			return nil, fmt.Errorf("collate function %s: %w", w.ownName, err)
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
	if single {
		samples = w.withLabels(samples)
	} else if batch, ok, err := w.collateColumns(samples); ok || err != nil {
		return batch, err
	}
	flat := make([]tree.Value, len(samples))
	for k, v := range samples {
		f, err := tree.Flatten(v, tree.Rules{})
		if err != nil {
			return nil, wrapSampleError(k, numbers, err)
		}
		flat[k] = f
	}
	if single {
		return w.convertSample(flat[0])
	}
	batch, err := tree.Collate(flat, tree.Rules{}, w.batchMemory)
	if row := (*tree.RowError)(nil); errors.As(err, &row) {
		return nil, wrapSampleError(row.Row, numbers, row.Err)
	}
	if err != nil {
		return nil, err
	}
	return toPython(batch, false)
}

// countSource counts a data set that the worker reads. labeled is its entry in [Child.Labeled].
func (w *loaderWorker) countSource(labeled bool) {
	w.sources++
	if labeled {
		w.labeled++
	}
}

// hasLabels reports whether the worker reads at least one data set, and all of them have labels:
// see [Child.Labeled].
func (w *loaderWorker) hasLabels() bool { return w.labeled > 0 && w.labeled == w.sources }

// withLabels returns a copy of samples with labels as int64 values: a label is an int64 tensor
// without dimensions. Each [data.Sample] becomes an array, which is encoded as a tuple. If the
// data sets have no labels, it returns samples itself.
func (w *loaderWorker) withLabels(samples []any) []any {
	if !w.hasLabels() {
		return samples
	}
	all := slices.Clone(samples)
	for k, v := range all {
		s, ok := v.(data.Sample)
		if !ok {
			continue
		}
		tuple := reflect.New(reflect.ArrayOf(len(s), reflect.TypeFor[any]())).Elem()
		for i, t := range s {
			if t != nil && t.Dims() == 0 && t.DType() == tensor.Int64 {
				tuple.Index(i).Set(reflect.ValueOf(tensor.Data[int64](t)[0]))
			} else {
				tuple.Index(i).Set(reflect.ValueOf(t))
			}
		}
		all[k] = tuple.Interface()
	}
	return all
}

// wrapSampleError adds to err the index of the sample at position k of a batch: numbers[k], or k
// itself if numbers is nil.
func wrapSampleError(k int, numbers []int, err error) error {
	if numbers != nil {
		return fmt.Errorf("sample %d: %w", numbers[k], err)
	}
	return fmt.Errorf("sample %d of a batch: %w", k, err)
}

// convertSample returns the value that default_convert would return. Its tensors are copies in
// memory that PyTorch can map, which the caller must close.
func (w *loaderWorker) convertSample(v tree.Value) (any, error) {
	n, err := tree.Parse(v.Spec)
	if err != nil {
		return nil, err
	}
	at := 0
	n.Leaves(func(leaf *tree.Node) {
		if t := v.Tensors; leaf.Kind == tree.Tensor && err == nil {
			t[at], err = copyToMappable(t[at], w.script.nextStrategy())
		}
		at += leaf.Tensors()
	})
	if err != nil {
		return nil, err
	}
	return toPython(v, false)
}

// copyToMappable returns a copy of t in memory that PyTorch can map with the given strategy. The
// caller must close the copy.
func copyToMappable(t *tensor.Tensor, how Strategy) (*tensor.Tensor, error) {
	own, err := Options{Strategy: how}.Empty(t.DType(), t.Shape()...)
	if err != nil {
		return nil, err
	}
	return own.CopyFrom(t), nil
}

// toPython converts a flattened value to Python types, which use the tensors of v. Tuples become
// lists unless tuples is set, as default_collate and default_convert do. Strings of a batch
// within a list become a tuple, because default_collate transposes lists with zip.
func toPython(v tree.Value, tuples bool) (any, error) {
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
	count := n.Tensors()
	leaf, err := n.Leaf((*rest)[:count])
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
