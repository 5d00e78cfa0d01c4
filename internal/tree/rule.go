package tree

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/tensor"
)

// A Rule specifies how tensors with a first dimension that varies from sample to sample are
// combined to a batch.
type Rule struct {
	Nested   bool    // concatenate the rows and add their offsets; Value to Mask are ignored
	Value    float64 // the padding value
	Left     bool    // pad at the beginning of a row instead of its end
	Length   int     // length of every row; 0 means the length of the longest row in the batch
	Multiple int     // if positive, round the length up to a multiple of this
	Mask     string  // if not empty, add a bool field of this name, true for the elements of rows
	Lengths  string  // if not empty, add an int64 field of this name with the row lengths
}

// Every is the path of the rule for all tensors that have dimensions and no rule of their own.
const Every = "*"

// Rules maps the paths of a value to rules. [NewRules] makes it, and the zero value has no
// rules. It may be used concurrently.
type Rules struct {
	paths []string
	list  []Rule
	named int // number of rules without Every
}

// NewRules returns rules by path. A path consists of keys separated by dots, and of [i] for
// list indices. The path [Every] stands for all other tensors.
func NewRules(byPath map[string]Rule) (r Rules) {
	for p := range byPath {
		r.paths = append(r.paths, p)
	}
	slices.Sort(r.paths)
	for _, p := range r.paths {
		r.list = append(r.list, byPath[p])
		if p != Every {
			r.named++
		}
	}
	return r
}

func (r Rules) findRule(path string) (rule int, ok bool) { return slices.BinarySearch(r.paths, path) }

// unusedError returns the error, which wraps [ErrValue], for a value that lacks the path of at
// least one rule. spec describes the structure of the value. The error names its top level and
// the paths of all rules.
func (r Rules) unusedError(spec string) error {
	names := slices.DeleteFunc(slices.Clone(r.paths), func(p string) bool { return p == Every })
	return valueError("ragged rules name %q, but the value has %s", names, describeSpec(spec))
}

// addRagged adds v as a ragged row, or as a list of such rows, if there is a rule for the
// current path. done reports whether there is a rule; if it is false, v was not added. The
// error wraps [ErrValue] if the rule does not apply to v.
func (f *flattener) addRagged(v any) (done bool, err error) {
	rule, named := f.rules.findRule(f.path.rulePath())
	t, isTensor := v.(*tensor.Tensor)
	if !named {
		var every bool
		if rule, every = f.rules.findRule(Every); !every || !isTensor && !isListOfRows(v) {
			return false, nil
		}
		if isTensor && (t == nil || t.Dims() == 0) {
			return false, nil
		}
	} else {
		f.used++
	}
	if isTensor {
		if err := f.addTensor(t); err != nil {
			return true, err
		}
		f.spec = appendRagged(f.spec[:len(f.spec)-1], rule, 1)
		return true, nil
	}
	l, ok := listOf(v)
	switch {
	case !ok:
		return true, f.pathError("ragged rule applies to %T, want a tensor, a slice of numbers, or a list of these", v)
	case l.depth > 1:
		return true, f.addLists(rule, l)
	}
	f.spec, f.tensors = appendRagged(f.spec, rule, 1), append(f.tensors, l.row)
	return true, nil
}

// isListOfRows reports whether v is a list of tensors with dimensions, or of such lists. The rule
// for all other tensors applies to it, and to an empty list.
func isListOfRows(v any) bool {
	items, ok := v.([]any)
	for _, item := range items {
		t, isTensor := item.(*tensor.Tensor)
		if isTensor && (t == nil || IsClosed(t) || t.Dims() == 0) || !isTensor && !isListOfRows(item) {
			return false
		}
	}
	return ok
}

// rowTensor makes a tensor with a copy of v, a slice or array of numbers or a []bool. It returns
// nil for any other value, and may return nil if v is empty.
func rowTensor(v any) *tensor.Tensor {
	switch v := v.(type) {
	case []any:
		return mixedRow(v)
	case []int64:
		return rowOf(v)
	case []float32:
		return rowOf(v)
	case []float64:
		return rowOf(v)
	case []uint8:
		return rowOf(v)
	case []int32:
		return rowOf(v)
	case []bool:
		return rowOf(v)
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return nil
	}
	items := make([]any, r.Len())
	for i := range items {
		items[i] = r.Index(i).Interface()
	}
	if len(items) == 0 && !reflect.Zero(r.Type().Elem()).CanInt() {
		return nil
	}
	return mixedRow(items)
}

func rowOf[T tensor.Elem](v []T) *tensor.Tensor { return tensor.FromSlice(slices.Clone(v), len(v)) }

// mixedRow makes an int64 tensor with the items, or a float64 tensor if one of the items is a
// float. It returns nil if an item is not a number.
func mixedRow(items []any) *tensor.Tensor {
	whole, all := make([]int64, len(items)), make([]float64, len(items))
	float := false
	for i, item := range items {
		switch v := reflect.ValueOf(item); {
		case v.IsValid() && v.CanInt():
			whole[i], all[i] = v.Int(), float64(v.Int())
		case v.IsValid() && v.CanUint():
			whole[i], all[i] = int64(v.Uint()), float64(v.Uint())
		case v.IsValid() && v.CanFloat():
			all[i], float = v.Float(), true
		default:
			return nil
		}
	}
	if float {
		return rowOf(all)
	}
	return rowOf(whole)
}

// describeSpec describes the top level of a value for errors, such as its keys.
func describeSpec(spec string) string {
	n, err := Parse(spec)
	if err != nil {
		return err.Error()
	}
	switch n.Kind {
	case Map:
		return fmt.Sprintf("fields %q", n.Keys)
	case List, Tuple:
		return fmt.Sprintf("%d fields", len(n.Items))
	}
	return n.Kind.String()
}

// names maps each kind to its name in errors.
var names = map[Kind]string{
	Tensor: "a tensor", Ragged: "a ragged row", Int: "an integer", Float: "a float", Bool: "a bool",
	Text: "a string", Bytes: "bytes",
	Texts: "strings", BytesList: "a list of bytes", None: "nil", Map: "a map", List: "a list", Tuple: "a tuple",
}

// String returns the name of the kind in errors.
func (k Kind) String() string { return strings.TrimSpace(names[k]) }
