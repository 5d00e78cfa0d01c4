package tree

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Any builds a Go value of plain types: map[string]any, or map[any]any if a key is a number;
// []any; []string and [][]byte for the strings and bytes of a batch; int64, float64, bool,
// string and []byte for the leaves of a single sample; and tensors. It closes tensors and
// returns errors as [Value.Into] does.
func (v Value) Any() (any, error) {
	var out any
	err := v.Into(&out)
	return out, err
}

// Into builds a Go value in *dst. dst must be a non-nil pointer. Maps become maps and structs,
// by the tags that [Flatten] reads. Lists become slices, arrays, and structs tagged as tuples.
// The tensors of numbers and strings are closed after their values are copied; other tensors
// are stored as they are, and the caller must close them. Into returns an error that wraps
// [ErrValue] if a part does not fit its destination, such as a key without a struct field, and
// one that wraps [ErrSpec] if v is inconsistent. After an error *dst may be built and the
// tensors may be closed in part.
func (v Value) Into(dst any) error {
	n, err := Parse(v.Spec)
	if err != nil {
		return err
	}
	to := reflect.ValueOf(dst)
	if to.Kind() != reflect.Pointer || to.IsNil() {
		return valueError("destination is %T, want a non-nil pointer", dst)
	}
	b := &builder{rest: v.Tensors}
	if err := b.buildNode(n, to.Elem()); err != nil {
		return err
	}
	if len(b.rest) > 0 {
		return fmt.Errorf("%w: %d tensors too many", ErrSpec, len(b.rest))
	}
	return nil
}

// A builder holds the state of [Value.Into]: the tensors that are left, and the path of the
// current part.
type builder struct {
	rest []*tensor.Tensor
	path path
}

func (b *builder) pathError(format string, args ...any) error {
	return b.path.wrapError(valueError("%s", fmt.Sprintf(format, args...)))
}

func (b *builder) buildNode(n *Node, to reflect.Value) error {
	if to.Kind() == reflect.Pointer && to.Type() != reflect.TypeFor[*tensor.Tensor]() && n.Kind != None {
		to.Set(reflect.New(to.Type().Elem()))
		return b.buildNode(n, to.Elem())
	}
	switch n.Kind {
	case Map:
		return b.buildMap(n, to)
	case List, Tuple:
		return b.buildList(n, to)
	}
	count := n.Tensors()
	if count > len(b.rest) {
		return b.path.wrapError(fmt.Errorf("%w: tensors are missing", ErrSpec))
	}
	leaf, err := n.Leaf(b.rest[:count])
	if err != nil {
		return b.path.wrapError(err)
	}
	for _, t := range b.rest[:count] {
		if t != leaf {
			t.Close()
		}
	}
	b.rest = b.rest[count:]
	return b.setLeaf(n.Kind, leaf, to)
}

// setLeaf stores a leaf of kind k in to. It returns an error that wraps [ErrValue] if the leaf
// does not fit the type, or a number overflows it.
func (b *builder) setLeaf(k Kind, leaf any, to reflect.Value) error {
	v := reflect.ValueOf(leaf)
	if !v.IsValid() {
		to.SetZero()
		return nil
	}
	ok := false
	switch {
	case v.Type().AssignableTo(to.Type()):
		to.Set(v)
		ok = true
	case k == Int && to.CanInt():
		ok = !to.OverflowInt(v.Int())
		to.SetInt(v.Int())
	case k == Int && to.CanUint():
		ok = v.Int() >= 0 && !to.OverflowUint(uint64(v.Int()))
		to.SetUint(uint64(v.Int()))
	case k == Float && to.CanFloat():
		to.SetFloat(v.Float())
		ok = true
	case v.Kind() == to.Kind() && v.CanConvert(to.Type()):
		to.Set(v.Convert(to.Type()))
		ok = true
	}
	if !ok {
		return b.pathError("cannot store %v (%v) in %s", k, leaf, to.Type())
	}
	return nil
}

// buildItem builds in to the item n of a map or a list, at the given step of the path: a key or
// an index.
func (b *builder) buildItem(step any, n *Node, to reflect.Value) error {
	b.path = append(b.path, step)
	err := b.buildNode(n, to)
	b.path = b.path[:len(b.path)-1]
	return err
}

func (b *builder) buildMap(n *Node, to reflect.Value) error {
	switch {
	case to.Kind() == reflect.Struct:
		return b.buildStruct(n, to)
	case to.Kind() == reflect.Interface && to.NumMethod() == 0:
		made := reflect.New(mapType(n)).Elem()
		if err := b.buildMap(n, made); err != nil {
			return err
		}
		to.Set(made)
		return nil
	case to.Kind() != reflect.Map:
		return b.pathError("cannot store a map with keys %q in %s", n.Keys, to.Type())
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), len(n.Keys)))
	for i, k := range n.Keys {
		key := reflect.ValueOf(k)
		if !key.CanConvert(to.Type().Key()) || key.Kind() == reflect.Int64 && to.Type().Key().Kind() == reflect.String {
			return b.pathError("cannot store key %v in %s", k, to.Type())
		}
		item := reflect.New(to.Type().Elem()).Elem()
		if err := b.buildItem(k, n.Items[i], item); err != nil {
			return err
		}
		to.SetMapIndex(key.Convert(to.Type().Key()), item)
	}
	return nil
}

func mapType(n *Node) reflect.Type {
	for _, k := range n.Keys {
		if _, text := k.(string); !text {
			return reflect.TypeFor[map[any]any]()
		}
	}
	return reflect.TypeFor[map[string]any]()
}

func (b *builder) buildStruct(n *Node, to reflect.Value) error {
	s := structOf(to.Type())
	if s.err != nil {
		return b.pathError("%v", s.err)
	}
	for i, k := range n.Keys {
		at := slices.IndexFunc(s.names, func(name string) bool { return k == name })
		if at < 0 {
			return b.pathError("no field %q in %s, which has %q", fmt.Sprint(k), to.Type(), s.names)
		}
		if err := b.buildItem(k, n.Items[i], to.Field(s.index[at])); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) buildList(n *Node, to reflect.Value) error {
	var item func(i int) reflect.Value
	switch {
	case to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), len(n.Items), len(n.Items)))
		item = to.Index
	case to.Kind() == reflect.Array && to.Len() == len(n.Items):
		item = to.Index
	case to.Kind() == reflect.Struct:
		s := structOf(to.Type())
		if s.err != nil || !s.tuple || len(s.index) != len(n.Items) {
			return b.pathError("cannot store a list of %d items in %s", len(n.Items), to.Type())
		}
		item = func(i int) reflect.Value { return to.Field(s.index[i]) }
	case to.Kind() == reflect.Interface && to.NumMethod() == 0:
		made := make([]any, len(n.Items))
		to.Set(reflect.ValueOf(made))
		item = func(i int) reflect.Value { return reflect.ValueOf(&made[i]).Elem() }
	default:
		return b.pathError("cannot store a list of %d items in %s", len(n.Items), to.Type())
	}
	for i := range n.Items {
		if err := b.buildItem(i, n.Items[i], item(i)); err != nil {
			return err
		}
	}
	return nil
}

// Leaf returns the Go value of a leaf from its tensors, as many as [Node.Tensors] returns. It
// returns an error that wraps [ErrSpec] if a tensor has the wrong dtype or shape, or if offsets
// are invalid, and for lists of ragged rows, which are only collated. Strings and bytes are
// copied, but a tensor is returned itself. Leaf closes no tensors.
func (n *Node) Leaf(of []*tensor.Tensor) (any, error) {
	switch n.Kind {
	case Ragged:
		if n.Depth > 1 {
			return nil, fmt.Errorf("%w: lists of ragged rows outside a batch", ErrSpec)
		}
		return of[0], nil
	case Tensor:
		return of[0], nil
	case None:
		return nil, nil
	case Int:
		return readNumber[int64](of[0], tensor.Int64)
	case Float:
		return readNumber[float64](of[0], tensor.Float64)
	case Bool:
		return readNumber[bool](of[0], tensor.Bool)
	case Text:
		b, err := bytesOf(of[0])
		return string(b), err
	case Bytes:
		b, err := bytesOf(of[0])
		return slices.Clone(b), err
	}
	return splitAtOffsets(n.Kind, of[0], of[1])
}

func readNumber[T tensor.Elem](t *tensor.Tensor, dt tensor.DType) (v T, err error) {
	if t.DType() != dt || t.Numel() != 1 {
		return v, fmt.Errorf("%w: number has shape %v and dtype %v", ErrSpec, t.Shape(), t.DType())
	}
	return tensor.Data[T](t)[0], nil
}

func bytesOf(t *tensor.Tensor) ([]byte, error) {
	if t.DType() != tensor.Uint8 || t.Dims() != 1 {
		return nil, fmt.Errorf("%w: string has shape %v and dtype %v", ErrSpec, t.Shape(), t.DType())
	}
	return tensor.Data[uint8](t), nil
}

// splitAtOffsets splits the bytes in of at the offsets in at, and returns copies of the parts:
// a []string if k is Texts, and otherwise a [][]byte. The error wraps [ErrSpec].
func splitAtOffsets(k Kind, of, at *tensor.Tensor) (any, error) {
	b, err := bytesOf(of)
	if err != nil || at.DType() != tensor.Int64 || at.Dims() != 1 || at.Numel() == 0 {
		return nil, fmt.Errorf("%w: strings have no offsets", ErrSpec)
	}
	offsets := tensor.Data[int64](at)
	texts, raw := make([]string, 0, len(offsets)-1), make([][]byte, 0, len(offsets)-1)
	for i := range len(offsets) - 1 {
		from, to := offsets[i], offsets[i+1]
		if from < 0 || to < from || to > int64(len(b)) {
			return nil, fmt.Errorf("%w: string begins at %d and ends at %d, length %d", ErrSpec, from, to, len(b))
		}
		if k == Texts {
			texts = append(texts, string(b[from:to]))
		} else {
			raw = append(raw, slices.Clone(b[from:to]))
		}
	}
	if k == Texts {
		return texts, nil
	}
	return raw, nil
}
