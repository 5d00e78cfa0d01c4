package model

import (
	"fmt"
	"reflect"
	"strings"
)

// Diff returns the differing fields of two states of the same type, such as "p[1].pc
// putFull→putClear", or "" if there are none. It is meant for traces and is slow.
func Diff(from, to any) string {
	var out []string
	diff("", reflect.ValueOf(from), reflect.ValueOf(to), &out)
	return strings.Join(out, "  ")
}

func diff(path string, a, b reflect.Value, out *[]string) {
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			field := path
			if f := a.Type().Field(i); !f.Anonymous {
				field = strings.TrimPrefix(path+"."+f.Name, ".")
			}
			diff(field, a.Field(i), b.Field(i), out)
		}
	case reflect.Array:
		for i := range a.Len() {
			diff(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i), out)
		}
	default:
		if !a.Equal(b) {
			*out = append(*out, fmt.Sprintf("%s %v→%v", path, name(a), name(b)))
		}
	}
}
