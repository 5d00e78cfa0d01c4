package value

import (
	"math/big"
	"reflect"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// A Lowerer converts Go values to values for pickles. A pointer that is shared in Go becomes one
// shared Python object. A Lowerer must not be used from several goroutines.
type Lowerer struct {
	// Own converts the values that only the caller knows, such as tensors. It must return ok for
	// these, even with an error. It is called once for each pointer.
	Own func(v any) (low any, ok bool, err error)
	// NameOf returns the registered name of a type that is the dynamic type of an interface with
	// methods. If NameOf is nil, such values are converted without a type name.
	NameOf func(t reflect.Type) (name string, ok bool)
	seen   map[any]any // converted values, by pointer
}

// maxDepth is the maximum nesting of values.
const maxDepth = 900

// Lower converts v to a value for pickle.Marshal. The error wraps [ErrUnsupported] if v has no
// Python equivalent, contains itself, or is nested too deeply.
func (l *Lowerer) Lower(v any) (any, error) { return l.lowerValue(v, 0) }

// lowerValue is [Lowerer.Lower] for a value inside depth other values. The error wraps
// [ErrUnsupported] if depth exceeds 900.
func (l *Lowerer) lowerValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, Unsupported("values nest deeper than %d, or contain themselves", maxDepth)
	}
	if got, ok := l.seen[pointerOf(v)]; ok {
		return got, nil
	}
	if low, ok, err := l.Own(v); ok {
		return l.recordLowered(v, low, err)
	}
	switch v := v.(type) {
	case nil, bool, int64, int, *big.Int, float64, complex128, string, []byte, Global, *ByteArray,
		*pickle.Array, *pickle.Scalar, *Set:
		return v, nil
	case tensor.DType:
		return Named("torch." + v.String()), nil
	case Size:
		return &pickle.Object{Class: Named("torch.Size"), Args: Tuple{Sizes(v)}}, nil
	case Device:
		return &pickle.Object{Class: Named("torch.device"), Args: Tuple{string(v)}}, nil
	case Tuple:
		items, err := l.lowerItems(reflect.ValueOf(v), depth)
		return Tuple(items), err
	case *Dict:
		low, err := l.lowerDict(v, depth)
		return l.recordLowered(v, low, err)
	}
	low, err := l.lowerByKind(reflect.ValueOf(v), depth)
	return l.recordLowered(v, low, err)
}

// Keys of the dict for the value of an interface with methods: the name of its type, and the value.
const (
	TypeKey  = "__type__"
	ValueKey = "value"
)

// lowerPart converts a part of a value. depth is as for lowerValue. If the part's static type is an
// interface with methods, the result includes the name of the dynamic type. The error wraps
// [ErrUnsupported] if that type is not registered.
func (l *Lowerer) lowerPart(v reflect.Value, depth int) (any, error) {
	if l.NameOf == nil || v.Kind() != reflect.Interface || v.NumMethod() == 0 || v.IsNil() {
		return l.lowerValue(v.Interface(), depth)
	}
	name, ok := l.NameOf(v.Elem().Type())
	if !ok {
		return nil, Unsupported(
			"%s in a %s cannot be decoded again: register it with wire.RegisterType",
			v.Elem().Type(), v.Type())
	}
	low, err := l.lowerValue(v.Interface(), depth)
	return pickle.NewDict(TypeKey, name, ValueKey, low), err
}

// pointerOf returns v if its kind is [reflect.Pointer], because a pointer identifies its value. It
// returns nil for other kinds, including maps and slices.
func pointerOf(v any) any {
	if t := reflect.TypeOf(v); t == nil || t.Kind() != reflect.Pointer {
		return nil
	}
	return v
}

// recordLowered records the converted value low if v is a pointer and err is nil. It returns low
// and err.
func (l *Lowerer) recordLowered(v, low any, err error) (any, error) {
	if p := pointerOf(v); p != nil && err == nil {
		if l.seen == nil {
			l.seen = map[any]any{}
		}
		l.seen[p] = low
	}
	return low, err
}

func (l *Lowerer) lowerDict(d *Dict, depth int) (any, error) {
	if d == nil {
		return nil, nil
	}
	out := &Dict{Ordered: d.Ordered}
	for k, v := range d.All() {
		key, err := l.lowerValue(k, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := l.lowerValue(v, depth+1)
		if err != nil {
			return nil, err
		}
		if err := out.Set(key, value); err != nil {
			return nil, err
		}
	}
	attrs, err := l.lowerValue(d.Attrs, depth+1)
	out.Attrs = attrs
	return out, err
}

func (l *Lowerer) lowerItems(v reflect.Value, depth int) ([]any, error) {
	out := make([]any, v.Len())
	for i := range out {
		var err error
		if out[i], err = l.lowerPart(v.Index(i), depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Sizes returns list as a tuple of ints.
func Sizes(list []int) Tuple {
	t := make(Tuple, len(list))
	for i, n := range list {
		t[i] = n
	}
	return t
}
