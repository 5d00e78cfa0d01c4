package nn

import (
	"fmt"
	"iter"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/sentinel"
	"github.com/shoal-mp/shoal/tensor"
)

// Module is a pointer to a struct with exported fields that contain parameters and buffers: a
// layer, or a struct of layers. Slices, arrays, interfaces and embedded structs are followed.
type Module any

// Layer is a Module that computes one output from one input.
type Layer interface {
	Forward(x *autograd.Var) *autograd.Var
}

// Params yields the parameters of modules, each once, in the order of the fields. It panics like
// [Named].
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

// Named yields the parameters of m with PyTorch's names. A name is the path of fields, in snake
// case: Conv1.Weight is conv1.weight, and HiddenOut.Bias is hidden_out.bias. Elements of slices and
// Sequentials are named by their index. A tag `nn:"name"` replaces the name of a field. A parameter
// that two fields refer to is yielded twice.
//
// Parameters must be reachable through exported fields. Named panics with an error that wraps
// [tensor.ErrMisuse] if one is reachable only through an unexported field, because it would be
// neither trained nor saved. A field with the tag `wire:"-"` is not part of the module.
func Named(m Module) iter.Seq2[string, *autograd.Param] {
	rejectHiddenParams(m)
	return iterateParams(m)
}

func iterateParams(m any) iter.Seq2[string, *autograd.Param] {
	return func(yield func(string, *autograd.Param) bool) {
		walk(reflect.ValueOf(m), "", func(path string, v any) bool {
			p, ok := v.(*autograd.Param)
			return !ok || p == nil || yield(path, p)
		})
	}
}

// Buffers yields the *tensor.Tensor fields of m, such as the running statistics of a BatchNorm2d,
// with PyTorch's names as described for [Named].
func Buffers(m Module) iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		walk(reflect.ValueOf(m), "", func(path string, v any) bool {
			t, ok := v.(*tensor.Tensor)
			return !ok || yield(path, t)
		})
	}
}

// walk calls visit for each pointer reachable through the exported fields of v, with its path,
// until visit returns false. It returns false in this case. Fields with the tag `wire:"-"` are
// skipped, because they are not sent and are not part of a module.
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

// isLeaf reports whether values of type t are parameters or buffers, which walk must not descend
// into.
func isLeaf(t reflect.Type) bool {
	return t == reflect.TypeFor[*autograd.Param]() || t == reflect.TypeFor[*tensor.Tensor]()
}

func walkParts(v reflect.Value, path string, visit func(path string, v any) bool) bool {
	switch v.Kind() {
	case reflect.Struct:
		suffix, _ := suffixOf(v)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("wire") != "-" &&
				!walk(addressable(v.Field(i)), joinName(path, f)+suffix, visit) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			at := path + withDot(path) + strconv.Itoa(i)
			if _, ok := suffixOf(v.Index(i)); ok {
				at = path
			}
			if !walk(addressable(v.Index(i)), at, visit) {
				return false
			}
		}
	}
	return true
}

// suffixOf returns the suffix that is appended to the names of v's parameters. ok is false if v
// has no suffix. PyTorch keeps such parts, for example a Pass, as attributes with a suffix
// instead of in a list, so walk must not add an index to their path.
func suffixOf(v reflect.Value) (suffix string, ok bool) {
	p, ok := addressable(v).Interface().(interface{ nameSuffix() string })
	if !ok || v.Kind() == reflect.Pointer && v.IsNil() {
		return "", false
	}
	return p.nameSuffix(), true
}

// addressable returns the address of an addressable struct, and v otherwise. Methods with a pointer
// receiver are then visible by reflection.
func addressable(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Struct && v.CanAddr() {
		return v.Addr()
	}
	return v
}

// joinName appends a dot, if path is not empty, and PyTorch's name of a field to path. The name
// is the tag `nn:"name"`, or otherwise the field's name in snake case. An embedded field, or one
// with the tag `nn:"-"`, adds nothing.
func joinName(path string, f reflect.StructField) string {
	name := f.Tag.Get("nn")
	if name == "" {
		name = snakeCase(f.Name)
	}
	if f.Anonymous || name == "-" {
		return path
	}
	return path + withDot(path) + name
}

func withDot(path string) string {
	if path == "" {
		return ""
	}
	return "."
}

// snakeCase converts a Go name to snake case: FC1 to fc1, ConvDrop to conv_drop, FCOut to fc_out.
func snakeCase(s string) string {
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

// misuse panics with an error that wraps kind, which must be tensor.ErrMisuse or an error that
// wraps it.
func misuse(kind error, format string, args ...any) {
	panic(sentinel.New("nn: "+fmt.Sprintf(format, args...), kind))
}
