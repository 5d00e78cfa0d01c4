package table

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Tensors returns v with each list of numbers, also a nested one of equal lengths, replaced by a
// tensor, including lists in maps and in other lists. It changes the maps in v. A list is a
// []any, or a []int64 or []float64, which the tensor may keep.
func Tensors(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			switch item.(type) {
			case map[string]any, []any, []int64, []float64:
				v[name] = Tensors(item)
			}
		}
		return v
	case []int64:
		return tensor.FromSlice(v, len(v))
	case []float64:
		return tensor.FromSlice(v, len(v)).To(tensor.Float32)
	case []any:
		var l lattice
		if l.addItem(v, 0) {
			return l.toTensor()
		}
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = Tensors(item)
		}
		return all
	}
	return v
}

// A lattice collects numbers from nested lists with equal lengths in each dimension, to make a
// tensor.
type lattice struct {
	shape   []int
	deepest bool // the shape is final: a number or an empty list was added
	numbers []float64
	whole   []int64 // the numbers as integers; valid unless kind is Float32
	kind    tensor.DType
}

// wider orders the dtypes of numbers from narrow to wide.
var wider = []tensor.DType{tensor.Bool, tensor.Int64, tensor.Float32}

// maxDims is the maximum depth of nested lists.
const maxDims = 16

// addItem adds a number, or a nested list of numbers, at the given depth: the number of lists
// around v. It returns false if v does not fit the lattice, which must then not be used.
func (l *lattice) addItem(v any, depth int) bool {
	switch v := v.(type) {
	case bool:
		n := int64(0)
		if v {
			n = 1
		}
		return l.addNumber(float64(n), n, tensor.Bool, depth)
	case int64:
		return l.addNumber(float64(v), v, tensor.Int64, depth)
	case float64:
		return l.addNumber(v, 0, tensor.Float32, depth)
	case []any:
		return l.addList(v, depth)
	case []int64:
		return addNumbers(l, v, depth)
	case []float64:
		return addNumbers(l, v, depth)
	}
	return false
}

// addNumbers adds a list of numbers, as addItem does.
func addNumbers[T int64 | float64](l *lattice, v []T, depth int) bool {
	kind := tensor.DTypeOf[T]()
	if kind == tensor.Float64 {
		kind = tensor.Float32
	}
	if !l.addLength(len(v), depth) {
		return false
	}
	for _, n := range v {
		if !l.addNumber(float64(n), int64(n), kind, depth+1) {
			return false
		}
	}
	return true
}

// addLength adds the length n of a list at the given depth. It returns false if the list does
// not fit the lattice.
func (l *lattice) addLength(n, depth int) bool {
	if depth == len(l.shape) {
		if l.deepest || depth == maxDims {
			return false
		}
		l.shape = append(l.shape, n)
	}
	return l.shape[depth] == n
}

func (l *lattice) addNumber(f float64, n int64, kind tensor.DType, depth int) bool {
	l.deepest = true
	if depth != len(l.shape) {
		return false
	}
	if slices.Index(wider, kind) > slices.Index(wider, l.kind) {
		l.kind = kind
	}
	l.numbers, l.whole = append(l.numbers, f), append(l.whole, n)
	return true
}

func (l *lattice) addList(v []any, depth int) bool {
	if !l.addLength(len(v), depth) {
		return false
	}
	if len(v) == 0 {
		l.deepest = true
		l.kind = tensor.Float32 // as torch.tensor([])
		return depth == len(l.shape)-1
	}
	for _, item := range v {
		if !l.addItem(item, depth+1) {
			return false
		}
	}
	return true
}

// toTensor returns the numbers as a tensor of the lattice's shape: of Float32 if one of them is
// a float or there are none, otherwise of Int64 if one is an integer, otherwise of Bool. A float
// that is not in a list becomes a Float64.
func (l *lattice) toTensor() *tensor.Tensor {
	if l.kind == tensor.Float32 {
		if len(l.shape) == 0 { // a single number is a Python float, which is a float64
			return tensor.FromSlice(l.numbers)
		}
		return tensor.FromSlice(l.numbers, l.shape...).To(tensor.Float32)
	}
	return tensor.FromSlice(l.whole, l.shape...).To(l.kind)
}
