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

// A Module is something with parameters: a layer, or a struct of layers.
type Module interface {
	Params() iter.Seq[*autograd.Param]
}

// A Layer is a Module that computes one value from one.
type Layer interface {
	Module
	Forward(x *autograd.Var) *autograd.Var
}

// NoParams is embedded in layers that have no parameters.
type NoParams struct{}

// Params returns nothing.
func (NoParams) Params() iter.Seq[*autograd.Param] { return Join() }

// Join returns the parameters of modules, each once, in order. It is how a struct of layers makes
// its Params.
func Join(modules ...Module) iter.Seq[*autograd.Param] {
	return func(yield func(*autograd.Param) bool) {
		seen := map[*autograd.Param]bool{}
		for _, m := range modules {
			for p := range m.Params() {
				if seen[p] {
					continue
				}
				seen[p] = true
				if !yield(p) {
					return
				}
			}
		}
	}
}

// Params returns the parameters that the exported fields of a pointer to a struct lead to, each
// once: a Params method of one line.
//
//	func (n *Net) Params() iter.Seq[*autograd.Param] { return nn.Params(n) }
func Params(m any) iter.Seq[*autograd.Param] {
	return func(yield func(*autograd.Param) bool) {
		seen := map[*autograd.Param]bool{}
		for _, p := range named(m) {
			if !seen[p] && !yield(p) {
				return
			}
			seen[p] = true
		}
	}
}

// Named returns the parameters of m with the names that PyTorch would give them: the path of
// fields, in lower case and with underscores (Conv1.Weight is conv1.weight, HiddenOut.Bias
// hidden_out.bias), and indices for the elements of slices and Sequentials. A field's tag
// `nn:"name"` replaces its name. A parameter that two fields refer to comes twice.
//
// It panics if fields and m.Params() disagree, which would train one network and save another.
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

func checkComplete(m Module) {
	found := map[*autograd.Param]bool{}
	for _, p := range named(m) {
		found[p] = false
	}
	for p := range m.Params() {
		if _, ok := found[p]; !ok {
			misuse("%T has parameter %q that no exported field leads to: export the field", m, p.Name)
		}
		found[p] = true
	}
	for name, p := range named(m) {
		if !found[p] {
			misuse("%T has a field %s whose parameter Params does not return: add it there", m, name)
		}
	}
}

// Buffers returns the tensors of m that are no parameters, such as the running statistics of a
// BatchNorm2d, with the names that PyTorch would give them: *tensor.Tensor fields, see Named.
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

// misuse panics with a sentence about a programmer's mistake.
func misuse(format string, args ...any) { panic("nn: " + fmt.Sprintf(format, args...)) }
