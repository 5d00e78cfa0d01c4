package tree

import (
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A list is a value at the path of a rule: a row, a list of rows, a list of such lists, and so on.
type list struct {
	row   *tensor.Tensor // nil if it has items
	items []list
	depth int // 1 for a row
}

// listOf returns v as a list. ok is false if v is neither a tensor with dimensions nor a slice
// or array of numbers, or of such lists. Lists of numbers are rows. An empty list counts as a
// row without elements.
func listOf(v any) (l list, ok bool) {
	if t, ok := v.(*tensor.Tensor); ok {
		return list{row: t, depth: 1}, t != nil && !IsClosed(t) && t.Dims() > 0
	}
	if t := rowTensor(v); t != nil {
		return list{row: t, depth: 1}, true
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return l, false
	}
	l.items, l.depth = make([]list, r.Len()), 2
	for i := range l.items {
		if l.items[i], ok = listOf(r.Index(i).Interface()); !ok {
			return l, false
		}
		l.depth = max(l.depth, l.items[i].depth+1)
	}
	return l, true
}

// isEmpty reports whether l is an empty list, which has any depth and any dtype.
func (l list) isEmpty() bool { return len(l.items) == 0 && (l.row == nil || isEmptyRow(l.row)) }

func isEmptyRow(t *tensor.Tensor) bool { return t.Dims() == 1 && t.Dim(0) == 0 }

// split returns the items of l. The items of a row are its parts in the first dimension, which
// are views. ok is false if the row has one dimension, so that its items are numbers.
func (l list) split() (items []list, ok bool) {
	if l.row == nil || l.isEmpty() {
		return l.items, true
	}
	if l.row.Dims() < 2 {
		return nil, false
	}
	for i := range l.row.Dim(0) {
		items = append(items, list{row: l.row.Select(0, i), depth: 1})
	}
	return items, true
}

// A jagged is a list as it is encoded: by its rows, and by the lengths of the lists at each
// level above them, from the inside out. The lengths of the rows are not among them.
type jagged struct {
	rows    []*tensor.Tensor
	lengths [][]int64
}

// collect appends the rows of l, which are depth levels down, and the lengths of its lists. It
// returns false if a row has fewer levels, because l then has numbers beside lists.
func (j *jagged) collect(l list, depth int) bool {
	if depth == 1 {
		if l.row == nil {
			l.row = tensor.Empty(tensor.Int64, 0)
		}
		j.rows = append(j.rows, l.row)
		return true
	}
	items, ok := l.split()
	if !ok {
		return false
	}
	for _, item := range items {
		if !j.collect(item, depth-1) {
			return false
		}
		if depth > 2 {
			n, _ := item.split()
			j.lengths[depth-3] = append(j.lengths[depth-3], int64(len(n)))
		}
	}
	return true
}

// addLists adds a list of rows or of lists for the rule with the given index: the concatenated
// rows, their lengths, and for each level above them the lengths of its lists. The error wraps
// [ErrValue].
func (f *flattener) addLists(rule int, l list) error {
	j := jagged{lengths: make([][]int64, l.depth-2)}
	if !j.collect(l, l.depth) {
		return f.pathError("got numbers and lists in one list, want lists of the same depth")
	}
	values, lengths, err := joinRows(j.rows)
	if err != nil {
		return f.path.wrapError(err)
	}
	f.tensors = append(f.tensors, values, rowOf(lengths))
	for _, n := range j.lengths {
		f.tensors = append(f.tensors, rowOf(n))
	}
	f.spec = appendRagged(f.spec, rule, l.depth)
	return nil
}

func appendRagged(spec []byte, rule, depth int) []byte {
	return appendCount(appendCount(append(spec, byte(Ragged)), rule), depth)
}

// joinRows concatenates rows into a new tensor, and returns the length of each. If all rows are
// empty, values is an empty int64 tensor. The error wraps [ErrValue] if a row is on a device,
// or the rows differ in dtype or in their shapes beyond the first dimension.
func joinRows(rows []*tensor.Tensor) (values *tensor.Tensor, lengths []int64, err error) {
	first, total := firstRow(rows), 0
	lengths = make([]int64, len(rows))
	for k, t := range rows {
		if t.Device() != nil {
			return nil, nil, valueError("list of rows on %v: copy them to the host", tensor.Place{Device: t.Device()})
		}
		if !isEmptyRow(t) && (t.DType() != first.DType() || !sameTail(t, first)) {
			return nil, nil, valueError("list has rows of %v %v and of %v %v, want one dtype, and equal shapes but for the "+
				"first dimension", first.DType(), first.Shape(), t.DType(), t.Shape())
		}
		lengths[k] = int64(t.Dim(0))
		total += t.Dim(0)
	}
	if first == nil {
		return tensor.Empty(tensor.Int64, 0), lengths, nil
	}
	shape := append([]int{total}, first.Shape()[1:]...)
	values = tensor.Empty(first.DType(), shape...)
	at := 0
	for _, t := range rows {
		if n := t.Dim(0); n > 0 {
			copyToView(values.Narrow(0, at, n), t)
			at += n
		}
	}
	return values, lengths, nil
}

// sameTail reports whether two tensors have equal shapes but for the first dimension.
func sameTail(a, b *tensor.Tensor) bool { return slices.Equal(a.Shape()[1:], b.Shape()[1:]) }

// firstRow returns the first row that is not an empty list, or nil.
func firstRow(rows []*tensor.Tensor) *tensor.Tensor {
	for _, t := range rows {
		if !isEmptyRow(t) {
			return t
		}
	}
	return nil
}

// deepenRagged returns the tensors of a ragged value of depth have as one of depth want. The
// first dimension of its rows becomes a level of lists. It returns an error that wraps
// [ErrShape] if the rows are numbers.
func deepenRagged(of []*tensor.Tensor, have, want int) ([]*tensor.Tensor, error) {
	for ; have < want; have++ {
		values := of[0]
		var lengths []int64
		if !isEmptyRow(values) {
			if values.Dims() < 2 {
				return nil, shapeError("got a list of numbers, want a list of lists as in another sample")
			}
			shape := values.Shape()
			lengths = make([]int64, shape[0])
			for i := range lengths {
				lengths[i] = int64(shape[1])
			}
			values = values.Contiguous().Reshape(append([]int{shape[0] * shape[1]}, shape[2:]...)...)
		}
		of = append([]*tensor.Tensor{values, rowOf(lengths)}, of[1:]...)
	}
	return of, nil
}
