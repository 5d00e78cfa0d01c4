package torch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch/internal/reader"
	"github.com/shoal-mp/shoal/torch/internal/vision"
)

// An opener opens the data set that r, a Python object of a certain class, represents. It
// registers with s the data sets that must be closed.
type opener func(s *source, ctx context.Context, r *python.Record) (data.Dataset, error)

// chainDataset is the class that concatenates IterableDatasets.
var chainDataset = named("torch.utils.data.dataset.ChainDataset")

// recognised maps the classes of torch.utils.data that every program supports without registration
// to their openers. Package vision supports further classes.
var recognised map[python.Global]opener

func init() { // not in the declaration, because that would be an initialization cycle
	recognised = map[python.Global]opener{
		named("torch.utils.data.dataset.Subset"):        openSubset,
		named("torch.utils.data.dataset.ConcatDataset"): openConcat,
		named("torch.utils.data.dataset.TensorDataset"): openTensorDataset,
		named("torch.utils.data.dataset.StackDataset"):  openStack,
	}
}

// knownOpener returns the opener for a class that needs no registration in [Child], or nil if
// the class does.
func knownOpener(class python.Global) opener {
	if vision.Known(class) {
		return openPictures
	}
	if r, ok := reader.Find(class); ok {
		return importedReader(r)
	}
	return recognised[class]
}

// recognisedNames returns the names of all supported classes, sorted, for errors.
func recognisedNames() []string {
	names := append(vision.Datasets(), reader.Names()...)
	for class := range recognised {
		names = append(names, class.Name)
	}
	slices.Sort(names)
	return names
}

// openPictures opens a torchvision data set. The class must be known to package vision. s closes
// the data set.
func openPictures(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
	ds, err := vision.Open(r)
	if err != nil {
		return nil, err
	}
	v, _ := attribute(r, "target_transform")
	target, _ := v.(python.Global)
	return s.openAndRegister(ctx, ds, !makesTensor[target])
}

// makesTensor contains the functions that, as a target_transform, make the class a tensor.
var makesTensor = map[python.Global]bool{named("torch.tensor"): true, named("torch.as_tensor"): true}

// importedReader returns the opener of a class that from reads, a reader in a package that the
// program imports.
func importedReader(from reader.Reader) opener {
	return func(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
		ds, err := from.Open(r)
		if err != nil {
			return nil, err
		}
		s.worker.columns = from.Collate
		return s.openAndRegister(ctx, ds, false)
	}
}

// openSubset opens a Subset, which random_split returns too, and the data set within it. The
// error wraps [ErrUnsupported] if an index is out of range.
func openSubset(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
	inner, _ := attribute(r, "dataset")
	of, err := s.openDataset(ctx, inner)
	if err != nil {
		return nil, err
	}
	v, _ := attribute(r, "indices")
	indices, err := indicesOf(v, of.Len())
	if err != nil {
		return nil, err
	}
	return data.NewSubset(of, indices), nil
}

// openConcat opens a ConcatDataset, which the + operator of data sets returns too, and the data
// sets within it.
func openConcat(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
	parts, err := listAttribute(r, "datasets")
	if err != nil {
		return nil, err
	}
	var all []data.Dataset
	n := 0
	for _, part := range parts {
		ds, err := s.openDataset(ctx, part)
		if err != nil {
			return nil, err
		}
		if ds.Len() > math.MaxInt-n {
			return nil, unsupported("number of samples of a ConcatDataset overflows int")
		}
		n += ds.Len()
		all = append(all, ds)
	}
	return data.NewConcatDataset(all...), nil
}

// openTensorDataset opens a TensorDataset. Its tensors lie in memory shared with PyTorch. The
// error wraps [ErrUnsupported] if there is no tensor or the tensors have different numbers of
// rows.
func openTensorDataset(s *source, ctx context.Context, r *python.Record) (data.Dataset, error) {
	parts, err := listAttribute(r, "tensors")
	if err != nil {
		return nil, err
	}
	var all []*tensor.Tensor
	for i, part := range parts {
		var t *tensor.Tensor
		if err := assign(&t, part); err != nil || t == nil {
			return nil, unsupported("element %d of a TensorDataset is %T, want a tensor", i, part)
		}
		if t.Dims() == 0 || i > 0 && t.Dim(0) != all[0].Dim(0) {
			return nil,
				unsupported("tensor of a TensorDataset has shape %v, want as many rows as the first tensor", t.Shape())
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return nil, unsupported("TensorDataset has 0 tensors, want at least 1")
	}
	return s.openAndRegister(ctx, data.NewTensorDataset(all...), false)
}

// listAttribute returns the items of an attribute that must be a list or a tuple. The error
// wraps [ErrUnsupported] otherwise.
func listAttribute(r *python.Record, name string) ([]any, error) {
	v, _ := attribute(r, name)
	switch v := v.(type) {
	case []any:
		return v, nil
	case python.Tuple:
		return v, nil
	}
	return nil, unsupported("%s.%s is %T, want a list", r.Class, name, v)
}

// indicesOf decodes the indices of a Subset of a data set of n samples: a list, a range, a
// tensor or an array. A negative index counts from the end, as in Python; the results are from 0
// to n-1. The error wraps [ErrUnsupported] if an index is out of range.
func indicesOf(v any, n int) ([]int, error) {
	list, err := decodeIndices(v, n, "a Subset")
	if err != nil {
		return nil, err
	}
	for k, i := range list {
		if i < -n || i >= n {
			return nil, unsupported(
				"index %d at position %d of a Subset is out of range, its data set has %d samples", i, k, n)
		}
		if i < 0 {
			list[k] += n
		}
	}
	return list, nil
}

// decodeIndices decodes indices into n samples: a list, a range, a tensor or an array of
// integers. It does not check their range, and negative ones stay negative. The last argument
// names the owner of the indices in errors.
func decodeIndices(v any, n int, whose string) (list []int, err error) {
	switch x := v.(type) {
	case *python.Record:
		return rangeOf(x, n, whose)
	case *python.Array:
		if v, err = value.TensorOf(x); err != nil {
			return nil, err
		}
	case []any, python.Tuple:
		return numbersOf(x, whose)
	}
	t, ok := v.(*tensor.Tensor)
	if !ok || t.Dims() != 1 || !isWhole(t) {
		return nil, unsupported(
			"indices of %s are %s, want integers in a list, range, tensor or array",
			whose, describeValue(v))
	}
	for _, i := range tensor.Data[int64](t.Clone().To(tensor.Int64)) {
		list = append(list, int(i))
	}
	return list, nil
}

// describeValue returns the dtype and shape of a tensor, or the type of another value, for errors.
func describeValue(v any) string {
	if t, ok := v.(*tensor.Tensor); ok {
		return fmt.Sprintf("%v of shape %v", t.DType(), t.Shape())
	}
	return fmt.Sprintf("%T", v)
}

func isWhole(t *tensor.Tensor) bool {
	switch t.DType() {
	case tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint16, tensor.Uint32:
		return t.Device() == nil
	}
	return false
}

// numbersOf decodes a list of Python, numpy or torch integers. The last argument names the owner
// of the indices in errors.
func numbersOf(v any, whose string) ([]int, error) {
	var items []any
	if err := assign(&items, v); err != nil {
		return nil, err
	}
	list := make([]int, len(items))
	for k, item := range items {
		if t, ok := item.(*tensor.Tensor); ok && t.Numel() == 1 && isWhole(t) {
			item = int64(t.Item())
		}
		if err := assign(&list[k], item); err != nil {
			return nil, fmt.Errorf("index %d of %s: %w", k, whose, err)
		}
	}
	return list, nil
}

// rangeOf decodes a range object. The first index outside of n samples, in either direction, is
// the last of the result, so that a huge range costs no memory and the caller can report the
// index. The last argument names the owner of the indices in errors.
func rangeOf(r *python.Record, n int, whose string) (list []int, err error) {
	var part [3]int
	if r.Class != named("builtins.range") {
		return nil, unsupported("indices of %s are a %s, want a list, range, tensor or array", whose, r.Class)
	}
	if err := assign(&part, r.Args); err != nil || part[2] == 0 {
		return nil, unsupported("invalid range %v, want start, stop and a step other than 0", r.Args)
	}
	start, stop, step := part[0], part[1], part[2]
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		list = append(list, i)
		outside, beyond := i < -n || i >= n, (i+step > i) != (step > 0)
		if outside || beyond { // the caller reports the former; the latter is an overflow after the last index
			break
		}
	}
	return list, nil
}
