package tree

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/tensor"
)

// A Rule says what becomes of a tensor whose first dimension differs from sample to sample.
type Rule struct {
	Nested   bool    // all rows one after the other, and where each begins; the rest is of padding
	Value    float64 // what is written where a row has ended
	Left     bool    // or before it begins
	Length   int     // of every row; 0 is that of the longest in the batch
	Multiple int     // of which the length is one
	Mask     string  // name of a field beside it, true where a row has elements; none if empty
	Lengths  string  // likewise, int64
}

// Every is the path of the rule for all tensors that have dimensions and no rule of their own.
const Every = "*"

// Rules are those for the places of a value.
type Rules struct {
	paths []string
	list  []Rule
	named int // without Every
}

// NewRules returns rules by path: keys with dots between them, and [i] for the places of lists.
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

func (r Rules) at(path string) (rule int, ok bool) { return slices.BinarySearch(r.paths, path) }

// unused is the error of rules for places that a value does not have.
func (r Rules) unused(spec string) error {
	names := slices.DeleteFunc(slices.Clone(r.paths), func(p string) bool { return p == Every })
	return worthless("there are rules for ragged rows of %q, and it has %s", names, describe(spec))
}

// ragged adds what a rule is for, and reports whether there is one for it.
func (f *flattener) ragged(v any) (done bool, err error) {
	rule, named := f.rules.at(f.path.plain())
	t, isTensor := v.(*tensor.Tensor)
	if !named {
		var every bool
		if rule, every = f.rules.at(Every); !every || !isTensor || t == nil || t.Dims() == 0 {
			return false, nil
		}
	} else {
		f.used++
	}
	if !isTensor {
		if t = row(v); t == nil {
			return true, f.fail("a %T; a rule for ragged rows is for a tensor or a slice of numbers", v)
		}
	}
	if err := f.tensor(t); err != nil {
		return true, err
	}
	f.spec[len(f.spec)-1] = byte(Ragged)
	f.spec = appendCount(f.spec, rule)
	return true, nil
}

// row makes a tensor of a slice of numbers, nil if it is none.
func row(v any) *tensor.Tensor {
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

// mixedRow makes a tensor of int64, or of float64 if one of the numbers is a float.
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

// describe says what a value has, for errors.
func describe(spec string) string {
	n, err := Parse(spec)
	if err != nil {
		return err.Error()
	}
	switch n.Kind {
	case Map:
		return fmt.Sprintf("the fields %q", n.Keys)
	case List, Tuple:
		return fmt.Sprintf("%d fields", len(n.Items))
	}
	return n.Kind.String()
}

// names are what errors call the kinds.
var names = map[Kind]string{
	Tensor: "a tensor", Ragged: "a ragged row", Int: "an integer", Float: "a float", Bool: "a bool",
	Text: "a string", Bytes: "bytes",
	Texts: "strings", BytesList: "a list of bytes", None: "nil", Map: "a map", List: "a list", Tuple: "a tuple",
}

// String returns the kind as errors call it.
func (k Kind) String() string { return strings.TrimSpace(names[k]) }
