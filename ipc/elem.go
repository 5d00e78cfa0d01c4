package ipc

import (
	"bytes"
	"reflect"
	"strconv"
)

// elemName returns the name of T, which is another one for types of one name in packages of one
// name.
func elemName[T any]() string { return typeName(reflect.TypeFor[T]()) }

func typeName(t reflect.Type) string {
	if t.Name() != "" {
		if t.PkgPath() == "" {
			return t.Name()
		}
		return t.PkgPath() + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + typeName(t.Elem())
	case reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	}
	return t.String()
}

// shortName is the name of a type without the directories of its packages, for errors.
func shortName(elem string) string {
	var short []byte
	for i := range len(elem) {
		if elem[i] == '/' {
			short = short[:bytes.LastIndexAny(short, "[]*")+1]
			continue
		}
		short = append(short, elem[i])
	}
	return string(short)
}
