package nn

import (
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A Module is a pointer to a struct whose exported fields lead to parameters and buffers: a layer,
// or a struct of layers. Slices, arrays, interfaces and embedded structs are followed.
type Module any

// A Layer is a Module that computes one value from one.
type Layer interface {
	Forward(x *autograd.Var) *autograd.Var
}

// Params yields the parameters of modules, each once, in the order of the fields. It panics as
// Named does.
func Params(modules ...Module) iter.Seq[*autograd.Param] {
	return func(yield func(*autograd.Param) bool) {
		seen := map[*autograd.Param]bool{}
		for _, m := range modules {
			for _, p := range Named(m) {
				if !seen[p] && !yield(p) {
					return
				}
				seen[p] = true
			}
		}
	}
}

// Named yields the parameters of m with the names that PyTorch gives them. A name is the path of
// fields, in lower case and with underscores: Conv1.Weight is conv1.weight, and HiddenOut.Bias is
// hidden_out.bias. Elements of slices and Sequentials have their index. A tag `nn:"name"` replaces
// the name of a field. A parameter that two fields refer to comes twice.
//
// Named panics if only an unexported field leads to a parameter, since the parameter would be
// neither trained nor saved. A field with the tag `wire:"-"` is not a part of the module.
func Named(m Module) iter.Seq2[string, *autograd.Param] {
	checkComplete(m)
	return named(m)
}

func named(m any) iter.Seq2[string, *autograd.Param] {
	return func(yield func(string, *autograd.Param) bool) {
		walk(reflect.ValueOf(m), "", func(path string, v any) bool {
			p, ok := v.(*autograd.Param)
			return !ok || p == nil || yield(path, p)
		})
	}
}

// Buffers yields the *tensor.Tensor fields of m, such as the running statistics of a BatchNorm2d,
// with the names that PyTorch gives them: see [Named].
func Buffers(m Module) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		walk(reflect.ValueOf(m), "", func(path string, v any) bool {
			t, ok := v.(*tensor.Tensor)
			return !ok || yield(path, t)
		})
	}
}

// walk visits every pointer that the exported fields of v lead to, with its path, until visit
// returns false. Fields that do not travel (`wire:"-"`) are no part of a module.
func walk(v reflect.Value, path string, visit func(path string, v any) bool) bool {
	switch v.Kind() {
	case reflect.Interface:
		return walk(v.Elem(), path, visit)
	case reflect.Pointer:
		if v.IsNil() {
			return true
		}
		if !visit(path, v.Interface()) {
			return false
		}
		if isLeaf(v.Type()) {
			return true
		}
		return walkParts(v.Elem(), path, visit)
	}
	return walkParts(v, path, visit)
}

// isLeaf reports whether values of t are what a module is about, and not made of parts.
func isLeaf(t reflect.Type) bool {
	return t == reflect.TypeFor[*autograd.Param]() || t == reflect.TypeFor[*tensor.Tensor]()
}

func walkParts(v reflect.Value, path string, visit func(path string, v any) bool) bool {
	switch v.Kind() {
	case reflect.Struct:
		suffix, _ := suffixOf(v)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("wire") != "-" && !walk(reachable(v.Field(i)), join(path, f)+suffix, visit) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			at := path + dot(path) + strconv.Itoa(i)
			if _, ok := suffixOf(v.Index(i)); ok {
				at = path
			}
			if !walk(reachable(v.Index(i)), at, visit) {
				return false
			}
		}
	}
	return true
}

// suffixOf returns what stands behind the names of the fields of a part that PyTorch does not put
// into a list: such a part has no index.
func suffixOf(v reflect.Value) (suffix string, ok bool) {
	p, ok := reachable(v).Interface().(interface{ nameSuffix() string })
	if !ok || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	return p.nameSuffix(), true
}

// reachable returns a struct that is a field or an element by its pointer, so that its methods are
// seen.
func reachable(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Struct && v.CanAddr() {
		return v.Addr()
	}
	return v
}

// join appends the name of a field; those of embedded structs and of a Sequential's layers stand in
// its place.
func join(path string, f reflect.StructField) string {
	name := f.Tag.Get("nn")
	if name == "" {
		name = snake(f.Name)
	}
	if f.Anonymous || name == "-" {
		return path
	}
	return path + dot(path) + name
}

func dot(path string) string {
	if path == "" {
		return ""
	}
	return "."
}

// snake writes a Go name as Python would: FC1 is fc1, ConvDrop conv_drop, FCOut fc_out.
func snake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		startsWord := i > 0 && unicode.IsUpper(c) &&
			(!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1]))
		if startsWord {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// misuse panics with an error that wraps kind: tensor.ErrMisuse, or an error that wraps it.
func misuse(kind error, format string, args ...any) {
	panic(fmt.Errorf("nn: %s%.0w", fmt.Sprintf(format, args...), kind))
}
