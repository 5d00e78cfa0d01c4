package huggingface

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// A maker is the implementation of a format: value returns element i of a column as a sample
// contains it.
type maker struct {
	makes func(t *table, column int) error // refuses a column that value does not support
	value func(a arrow.Array, i int) (any, error)
}

// ofPython produces the values of pyarrow's to_pylist: bool, int64, float64, string, lists and
// dicts, and nil for a null.
var ofPython = maker{
	makes: func(t *table, column int) error {
		for _, c := range t.chunks {
			if err := checkPythonType(c[column].DataType()); err != nil {
				return err
			}
		}
		return nil
	},
	value: pythonValue,
}

func checkPythonType(of arrow.DataType) error {
	switch of := of.(type) {
	case *arrow.StructType:
		for _, f := range of.Fields() {
			if err := checkPythonType(f.Type); err != nil {
				return err
			}
		}
		return nil
	case arrow.ListLikeType:
		if of.ID() == arrow.MAP {
			break
		}
		return checkPythonType(of.Elem())
	case *arrow.StringType, *arrow.LargeStringType, *arrow.NullType:
		return nil
	}
	return checkNumeric(of)
}

// checkNumeric returns an error that wraps [value.ErrUnsupported] for a type that is not
// numeric. It refuses uint64 too, because its values may exceed int64.
func checkNumeric(of arrow.DataType) error {
	switch of.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16,
		arrow.UINT32, arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return nil
	}
	return unsupportedError("Arrow type %v is not supported by Go", of)
}

func pythonValue(a arrow.Array, i int) (any, error) {
	if a.IsNull(i) {
		return nil, nil
	}
	switch a := a.(type) {
	case *array.Null: // IsNull may be false, because the array has no bitmap
		return nil, nil
	case *array.String:
		return string([]byte(a.Value(i))), nil
	case *array.LargeString:
		return string([]byte(a.Value(i))), nil
	case *array.Struct:
		d := new(value.Dict)
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			v, err := pythonValue(a.Field(k), i)
			if err == nil {
				err = d.Set(f.Name, v)
			}
			if err != nil {
				return nil, err
			}
		}
		return d, nil
	case array.ListLike:
		return pythonList(a.ListValues(), a, i)
	}
	list, err := copyNumbers(a, i, i+1)
	if err != nil {
		return nil, err
	}
	return list.appendTo(nil)[0], nil
}

func pythonList(items arrow.Array, of array.ListLike, i int) (any, error) {
	from, to, err := listRange(items, of, i)
	if err != nil {
		return nil, err
	}
	if checkNumeric(items.DataType()) == nil && items.NullN() == 0 {
		all, err := copyNumbers(items, from, to)
		if err != nil {
			return nil, err
		}
		return all.appendTo(make([]any, 0, to-from)), nil
	}
	list := make([]any, 0, to-from)
	for k := from; k < to; k++ {
		v, err := pythonValue(items, k)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// mostNothing limits the number of list elements that occupy no bytes.
const mostNothing = 1 << 20

// listRange returns the range of the elements of items, from from up to, but not including, to,
// that belong to list i of of. It checks the range against the size of the buffers: Arrow's
// reader does not, and a damaged file could request any amount of memory. The error wraps
// [value.ErrUnsupported].
func listRange(items arrow.Array, of array.ListLike, i int) (from, to int, err error) {
	low, high := of.ValueOffsets(i)
	if low < 0 || high < low || high > int64(elementCount(items)) {
		return 0, 0, unsupportedError("list has elements %d to %d, out of range for %d", low, high, elementCount(items))
	}
	return int(low), int(high), nil
}

// elementCount returns the number of elements of an array that its buffers hold, which may be
// less than its length in a damaged file.
func elementCount(a arrow.Array) int {
	switch a := a.(type) {
	case *array.Boolean:
		if bits := a.Data().Buffers()[1]; bits != nil {
			return min(a.Len(), 8*bits.Len()-a.Offset())
		}
		return 0
	case *array.Struct:
		n := min(a.Len(), mostNothing)
		for k := range a.NumField() {
			n = max(n, min(a.Len(), elementCount(a.Field(k))))
		}
		return n
	case *array.FixedSizeList:
		if n := int(a.DataType().(*arrow.FixedSizeListType).Len()); n > 0 {
			return min(a.Len(), elementCount(a.ListValues())/n-a.Offset())
		}
		return min(a.Len(), mostNothing)
	case *array.Null:
		return min(a.Len(), mostNothing)
	}
	return a.Len()
}

// ofTorch produces the values of the library's torch format: bool, int64 and float32 tensors, and
// strings.
var ofTorch = maker{
	makes: func(t *table, column int) error {
		for _, c := range t.chunks {
			if err := checkTensorType(c[column]); err != nil {
				return err
			}
		}
		return nil
	},
	value: torchValue,
}

func checkTensorType(a arrow.Array) error {
	if a.NullN() > 0 {
		return unsupportedError("missing values are not supported by Go")
	}
	switch a := a.(type) {
	case *array.String, *array.LargeString:
		return nil
	case array.ListLike:
		inner := a.ListValues()
		if inner.NullN() > 0 {
			return unsupportedError("missing values are not supported by Go")
		}
		return checkNumeric(inner.DataType())
	}
	return checkNumeric(a.DataType())
}

func torchValue(a arrow.Array, i int) (any, error) {
	switch a := a.(type) {
	case *array.String:
		return string([]byte(a.Value(i))), nil
	case *array.LargeString:
		return string([]byte(a.Value(i))), nil
	case array.ListLike:
		from, to, err := listRange(a.ListValues(), a, i)
		if err != nil {
			return nil, err
		}
		all, err := copyNumbers(a.ListValues(), from, to)
		if err != nil {
			return nil, err
		}
		return all.tensor(to - from), nil
	}
	one, err := copyNumbers(a, i, i+1)
	if err != nil {
		return nil, err
	}
	return one.tensor(), nil
}

// A list holds copied elements of a column: bools, ints or floats. copyNumbers makes it.
type list interface {
	appendTo(to []any) []any
	tensor(shape ...int) *tensor.Tensor // with PyTorch's default dtype
}

type (
	bools  []bool
	ints   []int64
	floats []float64
)

func (l bools) appendTo(to []any) []any  { return appendElements(to, l) }
func (l ints) appendTo(to []any) []any   { return appendElements(to, l) }
func (l floats) appendTo(to []any) []any { return appendElements(to, l) }

// appendElements appends each element of l to to, as a value of type T, and returns the slice.
func appendElements[T any](to []any, l []T) []any {
	for _, v := range l {
		to = append(to, v)
	}
	return to
}

func (l bools) tensor(shape ...int) *tensor.Tensor { return tensor.FromSlice([]bool(l), shape...) }
func (l ints) tensor(shape ...int) *tensor.Tensor  { return tensor.FromSlice([]int64(l), shape...) }
func (l floats) tensor(shape ...int) *tensor.Tensor {
	return tensor.FromSlice(convertSlice[float32](l), shape...)
}

// copyNumbers copies the elements of a from index from up to, but not including, index to. It
// returns an error if they are neither numbers nor bools.
func copyNumbers(a arrow.Array, from, to int) (list, error) {
	switch a := a.(type) {
	case *array.Boolean:
		l := make(bools, to-from)
		for k := range l {
			l[k] = a.Value(from + k)
		}
		return l, nil
	case *array.Float16:
		l := make(floats, to-from)
		for k := range l {
			l[k] = float64(a.Value(from + k).Float32())
		}
		return l, nil
	case *array.Int64:
		return ints(convertSlice[int64](a.Int64Values()[from:to])), nil
	case *array.Int32:
		return ints(convertSlice[int64](a.Int32Values()[from:to])), nil
	case *array.Int16:
		return ints(convertSlice[int64](a.Int16Values()[from:to])), nil
	case *array.Int8:
		return ints(convertSlice[int64](a.Int8Values()[from:to])), nil
	case *array.Uint32:
		return ints(convertSlice[int64](a.Uint32Values()[from:to])), nil
	case *array.Uint16:
		return ints(convertSlice[int64](a.Uint16Values()[from:to])), nil
	case *array.Uint8:
		return ints(convertSlice[int64](a.Uint8Values()[from:to])), nil
	case *array.Float64:
		return floats(convertSlice[float64](a.Float64Values()[from:to])), nil
	case *array.Float32:
		return floats(convertSlice[float64](a.Float32Values()[from:to])), nil
	}
	return nil, fmt.Errorf("value has unsupported type %v", a.DataType())
}

// convertSlice converts the elements of a slice to another numeric type.
func convertSlice[To, From int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | float32 | float64](of []From) []To {
	l := make([]To, len(of))
	for k, v := range of {
		l[k] = To(v)
	}
	return l
}
