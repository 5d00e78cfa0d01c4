package value

import (
	"fmt"
	"math/big"
	"reflect"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// An Assigner stores Python values, as a [Lifter] returns them, in Go variables of other types.
// The zero value is ready. It may be used from several goroutines if Own may.
type Assigner struct {
	// Own, if not nil, stores the values that only the caller knows. It must return ok for these,
	// even with an error. It is not called for nil, nor if v is assignable to dst.
	Own func(dst reflect.Value, v any) (ok bool, err error)
}

// Assign converts v and stores it at dst. It panics if dst is not a non-nil pointer. The error
// wraps [ErrUnsupported] if v does not fit; dst may then be partly assigned. Assign does not
// close tensors in v.
func (a *Assigner) Assign(dst, v any) error { return a.assignTo(reflect.ValueOf(dst).Elem(), v) }

func (a *Assigner) assignTo(dst reflect.Value, v any) error {
	if v == nil {
		return assignNone(dst)
	}
	if got := reflect.ValueOf(v); got.Type().AssignableTo(dst.Type()) {
		dst.Set(got)
		return nil
	}
	if a.Own != nil {
		if ok, err := a.Own(dst, v); ok {
			return err
		}
	}
	return a.assignKnown(dst, v)
}

// assignKnown converts v and stores it at dst, if v is not nil, not assignable to dst, and not
// stored by Own. It returns the same errors as [Assigner.Assign].
func (a *Assigner) assignKnown(dst reflect.Value, v any) error {
	switch v := v.(type) {
	case *python.Array:
		if dst.Type() == reflect.TypeFor[*tensor.Tensor]() {
			t, err := TensorOf(v)
			dst.Set(reflect.ValueOf(t))
			return err
		}
	case *python.Scalar:
		n, err := NumberOf(v)
		if err != nil {
			return err
		}
		return a.assignTo(dst, n)
	case *tensor.Tensor:
		if dst.Type() == reflect.TypeFor[*python.Array]() {
			array, err := ArrayOf(v)
			dst.Set(reflect.ValueOf(array))
			return err
		}
	case python.Tuple:
		return a.assignItems(dst, v)
	case []any:
		return a.assignItems(dst, v)
	case python.Size:
		items := make([]any, len(v))
		for i, n := range v {
			items[i] = int64(n)
		}
		return a.assignItems(dst, items)
	case *python.Set:
		return a.assignItems(dst, v.Members())
	case *python.Dict:
		return a.assignDict(dst, v)
	}
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		return a.assignTo(dst.Elem(), v)
	}
	return assignScalar(dst, v)
}

func mismatch(dst reflect.Value, v any) error {
	return Unsupported("cannot convert %T to %s", v, dst.Type())
}

func assignNone(dst reflect.Value) error {
	switch dst.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		dst.SetZero()
		return nil
	}
	return Unsupported("cannot convert None to %s", dst.Type())
}

func assignScalar(dst reflect.Value, v any) error {
	switch n := v.(type) {
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(n)
			return nil
		}
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(n)
			return nil
		}
	case python.Device:
		return assignScalar(dst, string(n))
	case []byte:
		if dst.Kind() == reflect.Slice && dst.Type().Elem().Kind() == reflect.Uint8 {
			dst.SetBytes(n)
			return nil
		}
	case *big.Int:
		if dst.CanUint() && n.IsUint64() && !dst.OverflowUint(n.Uint64()) {
			dst.SetUint(n.Uint64())
			return nil
		}
		return Unsupported("%v overflows %s", n, dst.Type())
	case int64:
		return assignInt(dst, n)
	case float64:
		if dst.CanFloat() {
			dst.SetFloat(n)
			return nil
		}
	case complex128:
		if dst.CanComplex() {
			dst.SetComplex(n)
			return nil
		}
	}
	return mismatch(dst, v)
}

func assignInt(dst reflect.Value, n int64) error {
	switch {
	case dst.CanInt() && !dst.OverflowInt(n):
		dst.SetInt(n)
	case dst.CanUint() && n >= 0 && !dst.OverflowUint(uint64(n)):
		dst.SetUint(uint64(n))
	case dst.CanFloat() && int64(float64(n)) == n:
		dst.SetFloat(float64(n))
	case dst.CanInt() || dst.CanUint() || dst.CanFloat():
		return Unsupported("%d overflows %s", n, dst.Type())
	default:
		return mismatch(dst, n)
	}
	return nil
}

func (a *Assigner) assignItems(dst reflect.Value, items []any) error {
	switch dst.Kind() {
	case reflect.Slice:
		dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	case reflect.Array:
		if dst.Len() != len(items) {
			return Unsupported("cannot convert %d values to %s", len(items), dst.Type())
		}
	case reflect.Struct:
		return a.assignFields(dst, items)
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return a.assignItems(dst.Elem(), items)
	default:
		return mismatch(dst, items)
	}
	for i, item := range items {
		if err := a.assignTo(dst.Index(i), item); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

// assignFields stores the elements of a tuple in the fields of dst, a struct that represents a
// tuple: see [FieldsOf]. The error wraps [ErrUnsupported] if dst is another struct or has
// another number of fields.
func (a *Assigner) assignFields(dst reflect.Value, items []any) error {
	fields, tuple, err := FieldsOf(dst.Type())
	if err != nil {
		return err
	}
	if !tuple || len(fields) != len(items) {
		return Unsupported("cannot convert a tuple of %d values to %s: want a struct with as many exported fields "+
			"and torch tags", len(items), dst.Type())
	}
	for i, f := range fields {
		if err := a.assignTo(dst.Field(f.Index), items[i]); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

func (a *Assigner) assignDict(dst reflect.Value, d *python.Dict) error {
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return a.assignDict(dst.Elem(), d)
	case reflect.Struct:
		return a.assignNamed(dst, d)
	case reflect.Interface:
		return a.assignRegistered(dst, d)
	case reflect.Map:
	default:
		return mismatch(dst, d)
	}
	dst.Set(reflect.MakeMapWithSize(dst.Type(), d.Len()))
	for k, v := range d.All() {
		key, value := reflect.New(dst.Type().Key()).Elem(), reflect.New(dst.Type().Elem()).Elem()
		if err := a.assignTo(key, k); err != nil {
			return fmt.Errorf("key %v: %w", k, err)
		}
		if !key.Comparable() {
			return Unsupported("key %v is not comparable in Go", k)
		}
		if err := a.assignTo(value, v); err != nil {
			return fmt.Errorf("value of %v: %w", k, err)
		}
		dst.SetMapIndex(key, value)
	}
	return nil
}

// assignRegistered stores in dst, an interface, a value as written by pt.Save: a dict with the
// registered name of the dynamic type and the value. The error wraps [ErrUnsupported] if d has
// another form, or if no type that implements the interface is registered under the name.
func (a *Assigner) assignRegistered(dst reflect.Value, d *python.Dict) error {
	name, _ := d.Get(TypeKey)
	text, ok := name.(string)
	if !ok || d.Len() != 2 {
		return mismatch(dst, d)
	}
	t, ok := codec.TypeNamed(text)
	if !ok || !t.AssignableTo(dst.Type()) {
		return Unsupported("cannot convert %q to %s: no assignable type is registered under that name: call "+
			"wire.RegisterType", text, dst.Type())
	}
	inside, _ := d.Get(ValueKey)
	made := reflect.New(t).Elem()
	if err := a.assignTo(made, inside); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	dst.Set(made)
	return nil
}

// assignNamed stores the values of a dict in the fields of a struct. A field without a key keeps
// its value. A key without a field is an error that wraps [ErrUnsupported], because its value
// would be lost.
func (a *Assigner) assignNamed(dst reflect.Value, d *python.Dict) error {
	fields, _, err := FieldsOf(dst.Type())
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, f := range fields {
		known[f.Name] = true
		v, ok := d.Get(f.Name)
		if !ok {
			continue
		}
		if err := a.assignTo(dst.Field(f.Index), v); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	for key := range d.All() {
		if name, ok := key.(string); !ok || !known[name] {
			return Unsupported("dict key %v has no field in %s: add a field tagged torch:\"%[1]v\"", key, dst.Type())
		}
	}
	return nil
}
