package torch

import (
	"fmt"
	"math/big"
	"reflect"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch/internal/vision"
)

// As converts v to type T, and returns v itself if it is a T. As is meant to be called with the two
// results of a call. If err is not nil, As returns it unchanged:
//
//	sum, err := torch.As[*tensor.Tensor](conn.Recv(ctx))
//
// A number must fit the target type. A dict is converted to a struct by the tags of its fields, a
// numpy array to a tensor with a copy of its elements, and a tensor to an array. A *[Proxy] is
// converted to a [Container], [Queue], [Event], [Semaphore] or [Cond]. If the conversion is
// impossible, As closes the tensors and files in v, and the error wraps [ErrUnsupported].
func As[T any](v any, err error) (T, error) {
	var to T
	if err != nil {
		return to, err
	}
	if err := assign(&to, v); err != nil {
		CloseAll(v)
		return *new(T), fmt.Errorf("convert: %w", err)
	}
	return to, nil
}

// assign converts a received value and stores it at dst, which must be a non-nil pointer.
func assign(dst, v any) error { return assignTo(reflect.ValueOf(dst).Elem(), v) }

func assignTo(dst reflect.Value, v any) error {
	if v == nil {
		return assignNone(dst)
	}
	if got := reflect.ValueOf(v); got.Type().AssignableTo(dst.Type()) {
		dst.Set(got)
		return nil
	}
	switch v := v.(type) {
	case *python.Array:
		if dst.Type() == reflect.TypeFor[*tensor.Tensor]() {
			t, err := value.TensorOf(v)
			dst.Set(reflect.ValueOf(t))
			return err
		}
	case *python.Scalar:
		n, err := value.NumberOf(v)
		if err != nil {
			return err
		}
		return assignTo(dst, n)
	case *tensor.Tensor:
		if dst.Type() == reflect.TypeFor[*python.Array]() {
			a, err := value.ArrayOf(v)
			dst.Set(reflect.ValueOf(a))
			return err
		}
	case interface{ self() *Proxy }:
		if p := v.self().asType(dst.Type()); p != nil {
			dst.Set(reflect.ValueOf(p))
			return nil
		}
	case *CUDATensor:
		if dst.Type() == reflect.TypeFor[*tensor.Tensor]() {
			return ErrCUDA
		}
	case *autograd.Param:
		if dst.Type() == reflect.TypeFor[*tensor.Tensor]() {
			dst.Set(reflect.ValueOf(v.T))
			return nil
		}
	case python.Tuple:
		return assignItems(dst, v)
	case []any:
		return assignItems(dst, v)
	case python.Size:
		items := make([]any, len(v))
		for i, n := range v {
			items[i] = int64(n)
		}
		return assignItems(dst, items)
	case *python.Set:
		return assignItems(dst, v.Members())
	case *python.Dict:
		return assignDict(dst, v)
	case *python.Record:
		if steps := reflect.TypeFor[image.Pipeline](); steps.AssignableTo(dst.Type()) {
			return assignSteps(dst, v)
		}
	}
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		return assignTo(dst.Elem(), v)
	}
	return assignScalar(dst, v)
}

// assignSteps converts a torchvision transform to steps for images with three channels.
func assignSteps(dst reflect.Value, transform *python.Record) error {
	steps, _, err := vision.Steps(transform, 3)
	if err != nil {
		return err
	}
	dst.Set(reflect.ValueOf(steps))
	return nil
}

func mismatch(dst reflect.Value, v any) error {
	return unsupported("cannot convert %T to %s", v, dst.Type())
}

func assignNone(dst reflect.Value) error {
	switch dst.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		dst.SetZero()
		return nil
	}
	return unsupported("cannot convert None to %s", dst.Type())
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
		return unsupported("%v overflows %s", n, dst.Type())
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
		return unsupported("%d overflows %s", n, dst.Type())
	default:
		return mismatch(dst, n)
	}
	return nil
}

func assignItems(dst reflect.Value, items []any) error {
	switch dst.Kind() {
	case reflect.Slice:
		dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
	case reflect.Array:
		if dst.Len() != len(items) {
			return unsupported("cannot convert %d values to %s", len(items), dst.Type())
		}
	case reflect.Struct:
		return assignFields(dst, items)
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return assignItems(dst.Elem(), items)
	default:
		return mismatch(dst, items)
	}
	for i, item := range items {
		if err := assignTo(dst.Index(i), item); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

// assignFields stores the elements of a tuple in the fields of a struct that represents a tuple.
func assignFields(dst reflect.Value, items []any) error {
	fields, tuple, err := value.FieldsOf(dst.Type())
	if err != nil {
		return err
	}
	if !tuple || len(fields) != len(items) {
		return unsupported("cannot convert a tuple of %d values to %s: want a struct with as many exported fields and torch tags", len(items), dst.Type())
	}
	for i, f := range fields {
		if err := assignTo(dst.Field(f.Index), items[i]); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return nil
}

func assignDict(dst reflect.Value, d *python.Dict) error {
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return assignDict(dst.Elem(), d)
	case reflect.Struct:
		return assignNamed(dst, d)
	case reflect.Interface:
		return assignRegistered(dst, d)
	case reflect.Map:
	default:
		return mismatch(dst, d)
	}
	dst.Set(reflect.MakeMapWithSize(dst.Type(), d.Len()))
	for k, v := range d.All() {
		key, value := reflect.New(dst.Type().Key()).Elem(), reflect.New(dst.Type().Elem()).Elem()
		if err := assignTo(key, k); err != nil {
			return fmt.Errorf("key %v: %w", k, err)
		}
		if !key.Comparable() {
			return unsupported("key %v is not comparable in Go", k)
		}
		if err := assignTo(value, v); err != nil {
			return fmt.Errorf("value of %v: %w", k, err)
		}
		dst.SetMapIndex(key, value)
	}
	return nil
}

// assignRegistered stores an interface value as written by pt.Save: a dict with the registered name
// of the dynamic type and the value.
func assignRegistered(dst reflect.Value, d *python.Dict) error {
	name, _ := d.Get(value.TypeKey)
	text, ok := name.(string)
	if !ok || d.Len() != 2 {
		return mismatch(dst, d)
	}
	t, ok := codec.TypeNamed(text)
	if !ok || !t.AssignableTo(dst.Type()) {
		return unsupported("cannot convert %q to %s: no assignable type is registered under that name: call wire.RegisterType", text, dst.Type())
	}
	inside, _ := d.Get(value.ValueKey)
	made := reflect.New(t).Elem()
	if err := assignTo(made, inside); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	dst.Set(made)
	return nil
}

// assignNamed stores the values of a dict in the fields of a struct. A key without a field is an
// error, because its value would be lost.
func assignNamed(dst reflect.Value, d *python.Dict) error {
	fields, _, err := value.FieldsOf(dst.Type())
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
		if err := assignTo(dst.Field(f.Index), v); err != nil {
			return fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	for key := range d.All() {
		if name, ok := key.(string); !ok || !known[name] {
			return unsupported("dict key %v has no field in %s: add a field tagged torch:\"%[1]v\"", key, dst.Type())
		}
	}
	return nil
}
