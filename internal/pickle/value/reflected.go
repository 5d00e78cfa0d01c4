package value

import (
	"cmp"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// lowerByKind converts a value by its kind, if lowerValue has no case for its type. depth is as for
// lowerValue. The error wraps [ErrUnsupported] if Python has no such value.
func (l *Lowerer) lowerByKind(v reflect.Value, depth int) (any, error) {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return new(big.Int).SetUint64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Complex64, reflect.Complex128:
		return v.Complex(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Slice:
		return l.lowerList(v, depth)
	case reflect.Array:
		items, err := l.lowerItems(v, depth)
		return Tuple(items), err
	case reflect.Map:
		return l.lowerMap(v, depth)
	case reflect.Struct:
		return l.lowerStruct(v, depth)
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		if v.Elem().Kind() != reflect.Struct {
			return l.lowerValue(v.Elem().Interface(), depth+1)
		}
		return l.lowerStruct(v.Elem(), depth)
	}
	return nil, Unsupported("%s has no Python representation", v.Type())
}

func (l *Lowerer) lowerList(v reflect.Value, depth int) (any, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return v.Bytes(), nil
	}
	items, err := l.lowerItems(v, depth)
	return &pickle.List{Items: items}, err
}

// lowerMap converts a map to a dict. depth is as for lowerValue. The keys are sorted by their text,
// so that equal maps have equal encodings. The error wraps [ErrUnsupported] if several keys are
// equal in Python.
func (l *Lowerer) lowerMap(v reflect.Value, depth int) (any, error) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	d := new(Dict)
	for _, k := range keys {
		key, err := l.lowerValue(k.Interface(), depth+1)
		if err != nil {
			return nil, err
		}
		value, err := l.lowerPart(v.MapIndex(k), depth+1)
		if err != nil {
			return nil, err
		}
		if err := d.Set(key, value); err != nil {
			return nil, err
		}
	}
	if d.Len() != len(keys) {
		return nil, Unsupported("map has several keys that are equal in Python")
	}
	return d, nil
}

// lowerStruct converts a struct to a dict of its fields, or to a tuple if the struct is tagged
// as one; see [FieldsOf], which has the errors. depth is as for lowerValue.
func (l *Lowerer) lowerStruct(v reflect.Value, depth int) (any, error) {
	fields, tuple, err := FieldsOf(v.Type())
	if err != nil {
		return nil, err
	}
	d, items := new(Dict), Tuple{}
	for _, f := range fields {
		value, err := l.lowerPart(v.Field(f.Index), depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		items = append(items, value)
		if err := d.Set(f.Name, value); err != nil {
			return nil, err
		}
	}
	if tuple {
		return items, nil
	}
	return d, nil
}

// A Field is a field of a struct: its index for [reflect.Value.Field], and its name in Python.
type Field struct {
	Index int
	Name  string
}

// FieldsOf returns the fields of a struct type that are converted. The tag `torch:"name"` sets
// the key in the dict, which is the field's name by default; `torch:"-"` omits a field; and a
// field _ with `torch:",tuple"` makes the struct a tuple, which the second result reports. The
// error wraps [ErrUnsupported] if a field is not exported or if two fields have the same name.
// It panics if t is not a struct type.
func FieldsOf(t reflect.Type) (fields []Field, tuple bool, err error) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("torch"), ",")
		switch {
		case f.Name == "_":
			tuple = tuple || option == "tuple"
			continue
		case name == "-":
			continue
		case !f.IsExported():
			return nil, false, Unsupported("field %s.%s is not exported: tag it torch:\"-\"", t, f.Name)
		case name == "":
			name = f.Name
		}
		if slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			return nil, false, Unsupported("%s has two fields called %q in Python: tag one", t, name)
		}
		fields = append(fields, Field{i, name})
	}
	return fields, tuple, nil
}
