package tree

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// ErrValue is wrapped by the error for a value with a part that cannot be represented by tensors,
// such as a function.
var ErrValue = errors.New("value cannot be batched")

// A Value is a value decomposed into its structure and its tensors. [Flatten], [FlattenBatch]
// and [Collate] make it.
type Value struct {
	Spec    string // description of the structure; see Parse
	Tensors []*tensor.Tensor
}

// An ordered is a map with an order of its own, such as the dicts of package torch.
type ordered interface {
	Len() int
	All() iter.Seq2[any, any]
}

// Flatten decomposes v, which may consist of tensors, numbers, bools, strings, []byte, nil, and
// slices, arrays, maps and structs of these. The result contains the tensors of v themselves,
// not copies; the other tensors are new. A slice of numbers at a path with a rule becomes one
// ragged row instead of a list. Flatten returns an error that wraps [ErrValue] and names the
// path if v has another part, a closed or nil tensor, more than 64 levels or 2²⁰ parts, or no
// part at the path of a rule.
func Flatten(v any, rules Rules) (Value, error) {
	f := flattener{rules: rules}
	err := f.addValue(v)
	if err == nil && f.used < rules.named {
		err = rules.unusedError(string(f.spec))
	}
	if err != nil {
		return Value{}, err
	}
	return Value{string(f.spec), f.tensors}, nil
}

// FlattenBatch is [Flatten] without rules for a batch, in which a []string or a [][]byte has
// one item for each sample and is not a list.
func FlattenBatch(v any) (Value, error) {
	f := flattener{batch: true}
	if err := f.addValue(v); err != nil {
		return Value{}, err
	}
	return Value{string(f.spec), f.tensors}, nil
}

// A flattener holds the state of [Flatten] and [FlattenBatch].
type flattener struct {
	rules   Rules
	batch   bool
	spec    []byte
	tensors []*tensor.Tensor
	path    path
	used    int // number of rules that have matched a path
	nodes   int
	depth   int
}

func (f *flattener) pathError(format string, args ...any) error {
	return f.path.wrapError(valueError("%s", fmt.Sprintf(format, args...)))
}

func (f *flattener) addLeaf(k Kind, t *tensor.Tensor) error {
	f.spec, f.tensors = append(f.spec, byte(k)), append(f.tensors, t)
	return nil
}

// addAt adds v, which is at the given step of the path.
func (f *flattener) addAt(step, v any) error {
	f.path = append(f.path, step)
	err := f.addValue(v)
	f.path = f.path[:len(f.path)-1]
	return err
}

func (f *flattener) addValue(v any) error {
	f.nodes, f.depth = f.nodes+1, f.depth+1
	defer func() { f.depth-- }()
	if f.depth > maxDepth || f.nodes > maxNodes {
		return f.pathError("value exceeds %d levels or %d parts", maxDepth, maxNodes)
	}
	if len(f.rules.list) > 0 {
		if done, err := f.addRagged(v); done {
			return err
		}
	}
	if f.batch && f.addItems(v) {
		return nil
	}
	switch v := v.(type) {
	case nil:
		f.spec = append(f.spec, byte(None))
		return nil
	case *tensor.Tensor:
		return f.addTensor(v)
	case []byte:
		return f.addLeaf(Bytes, bytesTensor(slices.Clone(v)))
	case []*tensor.Tensor:
		return addItemList(f, List, len(v), func(i int) any { return v[i] })
	case []any:
		return addItemList(f, List, len(v), func(i int) any { return v[i] })
	case map[string]any:
		return f.addMap(reflect.ValueOf(v))
	case ordered:
		return f.addOrdered(v)
	}
	return f.addReflected(reflect.ValueOf(v))
}

// addItems adds v if it is a []string or a [][]byte, with one item for each sample, and reports
// whether it did.
func (f *flattener) addItems(v any) bool {
	switch v := v.(type) {
	case []string:
		f.addJoined(Texts, len(v), func(i int) string { return v[i] })
	case [][]byte:
		f.addJoined(BytesList, len(v), func(i int) string { return string(v[i]) })
	default:
		return false
	}
	return true
}

func (f *flattener) addJoined(k Kind, n int, item func(i int) string) {
	var all []byte
	offsets := make([]int64, n+1)
	for i := range n {
		all = append(all, item(i)...)
		offsets[i+1] = int64(len(all))
	}
	f.spec, f.tensors = append(f.spec, byte(k)), append(f.tensors, bytesTensor(all), tensor.FromSlice(offsets, n+1))
}

func (f *flattener) addTensor(t *tensor.Tensor) error {
	switch {
	case t == nil:
		return f.pathError("tensor is nil")
	case IsClosed(t):
		return f.pathError("tensor is closed: do not close a tensor that you return")
	}
	return f.addLeaf(Tensor, t)
}

// IsClosed reports whether t is closed. It detects that by the panic of a method.
func IsClosed(t *tensor.Tensor) (yes bool) {
	defer func() { yes = recover() != nil }()
	t.Version()
	return false
}

// bytesTensor makes a tensor that takes ownership of b.
func bytesTensor(b []byte) *tensor.Tensor { return tensor.FromSlice(b, len(b)) }

func (f *flattener) addReflected(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		return f.addLeaf(Bool, tensor.FromSlice([]bool{v.Bool()}))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return f.addLeaf(Int, tensor.FromSlice([]int64{v.Int()}))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return f.pathError("%d overflows int64", v.Uint())
		}
		return f.addLeaf(Int, tensor.FromSlice([]int64{int64(v.Uint())}))
	case reflect.Float32, reflect.Float64:
		return f.addLeaf(Float, tensor.FromSlice([]float64{v.Float()}))
	case reflect.String:
		return f.addLeaf(Text, bytesTensor([]byte(v.String())))
	case reflect.Slice:
		return addItemList(f, List, v.Len(), func(i int) any { return v.Index(i).Interface() })
	case reflect.Array:
		return addItemList(f, Tuple, v.Len(), func(i int) any { return v.Index(i).Interface() })
	case reflect.Map:
		return f.addMap(v)
	case reflect.Struct:
		return f.addStruct(v)
	case reflect.Pointer:
		if v.IsNil() {
			return f.addValue(nil)
		}
		return f.addValue(v.Elem().Interface())
	}
	return f.pathError("got %s, want a tensor, number, bool or string, or a slice, map or struct of those", v.Type())
}

func addItemList(f *flattener, k Kind, n int, item func(i int) any) error {
	f.spec = appendCount(append(f.spec, byte(k)), n)
	for i := range n {
		if err := f.addAt(i, item(i)); err != nil {
			return err
		}
	}
	return nil
}

// addMap adds a map, in the order of its keys. It returns an error that wraps [ErrValue] if a
// key is not a string or an integer, or two keys are equal as keys of a [Node].
func (f *flattener) addMap(v reflect.Value) error {
	keys, values := make([]any, 0, v.Len()), make(map[any]any, v.Len())
	for it := v.MapRange(); it.Next(); {
		k, ok := keyOf(it.Key().Interface())
		if !ok {
			return f.pathError("key is %s, want a string or an integer", it.Key().Type())
		}
		if _, twice := values[k]; twice {
			return f.pathError("duplicate key %v", k)
		}
		keys, values[k] = append(keys, k), it.Value().Interface()
	}
	slices.SortFunc(keys, compareKeys)
	return f.addPairs(keys, func(i int) any { return values[keys[i]] })
}

func (f *flattener) addOrdered(d ordered) error {
	keys, values := make([]any, 0, d.Len()), make([]any, 0, d.Len())
	for k, v := range d.All() {
		key, ok := keyOf(k)
		if !ok {
			return f.pathError("key is %T, want a string or an integer", k)
		}
		keys, values = append(keys, key), append(values, v)
	}
	return f.addPairs(keys, func(i int) any { return values[i] })
}

func (f *flattener) addStruct(v reflect.Value) error {
	s := structOf(v.Type())
	if s.err != nil {
		return f.pathError("%v", s.err)
	}
	field := func(i int) any { return v.Field(s.index[i]).Interface() }
	if s.tuple {
		return addItemList(f, Tuple, len(s.index), field)
	}
	keys := make([]any, len(s.names))
	for i, name := range s.names {
		keys[i] = name
	}
	return f.addPairs(keys, field)
}

func (f *flattener) addPairs(keys []any, value func(i int) any) error {
	f.spec = appendCount(append(f.spec, byte(Map)), len(keys))
	for _, k := range keys {
		f.spec = appendKey(f.spec, k)
	}
	for i, k := range keys {
		if err := f.addAt(k, value(i)); err != nil {
			return err
		}
	}
	return nil
}

// keyOf converts a map key to a key of a [Node], which is a string or an int64. ok is false if it
// cannot.
func keyOf(k any) (key any, ok bool) {
	v := reflect.ValueOf(k)
	switch {
	case v.Kind() == reflect.String:
		return v.String(), true
	case v.IsValid() && v.CanInt():
		return v.Int(), true
	case v.IsValid() && v.CanUint() && v.Uint() <= math.MaxInt64:
		return int64(v.Uint()), true
	}
	return nil, false
}

// compareKeys returns -1, 0 or 1 as a sorts before b, equals it, or sorts after it. It orders
// numbers before strings.
func compareKeys(a, b any) int {
	x, xText := a.(string)
	y, yText := b.(string)
	switch {
	case xText && yText:
		return cmp.Compare(x, y)
	case !xText && !yText:
		return cmp.Compare(a.(int64), b.(int64))
	case xText:
		return 1
	}
	return -1
}
