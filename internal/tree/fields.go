package tree

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// A structType holds the parsed tags of a struct type. names and index have the keys and the
// indices of its fields. tuple is true for a struct tagged as a list. If err is not nil, the
// type cannot be used.
type structType struct {
	names []string
	index []int
	tuple bool
	err   error
}

var structs sync.Map // reflect.Type to *structType

// structOf returns the parsed tags of a struct type. The key of a field is the name in
// `data:"name"`, otherwise the name in `torch:"name"`, otherwise the field's own name. The name
// "-" omits the field. A field _ with `data:",tuple"` makes the struct a list. The result is
// cached and must not be changed. Its err is set if an unexported field is not omitted.
func structOf(t reflect.Type) *structType {
	if s, ok := structs.Load(t); ok {
		return s.(*structType)
	}
	s := new(structType)
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("data")
		if !ok {
			tag = f.Tag.Get("torch")
		}
		name, option, _ := strings.Cut(tag, ",")
		switch {
		case f.Name == "_":
			s.tuple = s.tuple || option == "tuple"
			continue
		case name == "-":
			continue
		case !f.IsExported():
			s.err = fmt.Errorf("%s has the unexported field %s: export it, or tag it data:\"-\"", t, f.Name)
		case name == "":
			name = f.Name
		}
		s.names, s.index = append(s.names, name), append(s.index, i)
	}
	structs.Store(t, s)
	return s
}
