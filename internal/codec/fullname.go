package codec

import (
	"reflect"
	"strconv"
)

// FullName returns the name of a type with its full package path, so that types with equal names in
// packages with equal names differ.
func FullName(t reflect.Type) string {
	if t.Name() != "" {
		if t.PkgPath() == "" {
			return t.Name()
		}
		return t.PkgPath() + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + FullName(t.Elem())
	case reflect.Slice:
		return "[]" + FullName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + FullName(t.Elem())
	case reflect.Map:
		return "map[" + FullName(t.Key()) + "]" + FullName(t.Elem())
	}
	return t.String()
}
