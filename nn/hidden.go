package nn

import (
	"reflect"
	"sync"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// rejectHiddenParams panics with [tensor.ErrMisuse] if m is not a module, or if a parameter is
// reachable only through an unexported field of m.
func rejectHiddenParams(m Module) {
	v := reflect.ValueOf(m)
	if !v.IsValid() || !canHoldParams(v.Type()) && v.Kind() != reflect.Pointer && v.Kind() != reflect.Struct {
		misuse(tensor.ErrMisuse, "got %T, want a module, that is, a pointer to a struct", m)
	}
	s := search{found: map[uintptr]bool{}, seen: map[visit]bool{}}
	for _, p := range iterateParams(m) {
		s.found[reflect.ValueOf(p).Pointer()] = true
	}
	if path := s.findHidden(v, ""); path != "" {
		misuse(tensor.ErrMisuse, "%T has a parameter that is reachable only through the unexported field %s: "+
			"export the field",
			m, path)
	}
}

// A search looks for parameters in fields of all kinds, in one module. It only reads pointers,
// which reflection permits for unexported fields.
type search struct {
	found map[uintptr]bool // the parameters reachable through exported fields
	seen  map[visit]bool
}

type visit struct {
	at uintptr
	t  reflect.Type
}

// findHidden returns the path of the first parameter in v that is not in s.found, or "" if there
// is none. path is the path of v.
func (s search) findHidden(v reflect.Value, path string) string {
	if !v.IsValid() || !canHoldParams(v.Type()) {
		return ""
	}
	switch v.Kind() {
	case reflect.Interface:
		return s.findHidden(v.Elem(), path)
	case reflect.Pointer:
		return s.findBehindPointer(v, path)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if p := s.findHidden(v.Index(i), path); p != "" {
				return p
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Tag.Get("wire") == "-" {
				continue
			}
			if p := s.findHidden(v.Field(i), path+withDot(path)+f.Name); p != "" {
				return p
			}
		}
	}
	return ""
}

// findBehindPointer is findHidden for a pointer v. It follows each pointer at most once and
// returns "" the next time.
func (s search) findBehindPointer(v reflect.Value, path string) string {
	at := visit{v.Pointer(), v.Type()}
	switch {
	case v.IsNil() || s.seen[at]:
		return ""
	case v.Type() == reflect.TypeFor[*autograd.Param]():
		if !s.found[at.at] {
			return path
		}
		return ""
	}
	s.seen[at] = true
	return s.findHidden(v.Elem(), path)
}

var leading sync.Map // cache of canHoldParams: reflect.Type to bool

// canHoldParams reports whether values of type t can contain parameters: *autograd.Param, layers,
// and pointers, slices, arrays and structs of them.
func canHoldParams(t reflect.Type) bool {
	if known, ok := leading.Load(t); ok {
		return known.(bool)
	}
	found := canHoldParamsBy(t, map[reflect.Type]bool{})
	leading.Store(t, found)
	return found
}

func canHoldParamsBy(t reflect.Type, above map[reflect.Type]bool) bool {
	if above[t] {
		return false
	}
	above[t] = true
	switch {
	case t == reflect.TypeFor[*autograd.Param]():
		return true
	case t == reflect.TypeFor[*autograd.Var]():
		return false // a node of a graph; its parameters belong to other modules
	case t.Kind() == reflect.Interface:
		return t.Implements(reflect.TypeFor[Layer]())
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return canHoldParamsBy(t.Elem(), above)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			if canHoldParamsBy(t.Field(i).Type, above) {
				return true
			}
		}
	}
	return false
}
