package vision

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// fields reads the attributes of the Python object of. It records the first error, so that a
// caller may check f.err once at the end; the results before that may be zero values. One
// goroutine may use it.
type fields struct {
	of  *value.Record
	err error
}

// name returns the name of the object's class for errors, as a script would write it.
func (f *fields) name() string { return shortName(f.of.Class) }

// shortName returns the short name of a class that scripts use: v2.Resize, transforms.Resize,
// datasets.MNIST.
func shortName(g value.Global) string {
	for _, known := range []struct{ module, short string }{
		{v2Module, "v2."}, {v1Module, "transforms."},
		{"torchvision.transforms.functional", "transforms.functional."}, {"torchvision.datasets.", "datasets."},
	} {
		if strings.HasPrefix(g.Module, known.module) {
			return known.short + g.Name
		}
	}
	return g.String()
}

// refuse records in f.err an error that wraps [value.ErrUnsupported], with the reason why Go
// does not support the object. Only the first call has an effect.
func (f *fields) refuse(format string, args ...any) {
	if f.err == nil {
		f.err = value.Unsupported("%s: %s", f.name(), fmt.Sprintf(format, args...))
	}
}

// get returns an attribute. If it is missing, get returns nil and sets f.err.
func (f *fields) get(name string) any {
	v, ok := f.of.Attr(name)
	if !ok {
		f.refuse("attribute %s is missing: this version of torchvision is not supported", name)
	}
	return v
}

// optionalAttr returns an attribute, or nil if it is missing or None.
func (f *fields) optionalAttr(name string) any {
	v, _ := f.of.Attr(name)
	return v
}

// requireUnset refuses an attribute unless it is missing, None or False: see [fields.refuse].
// instead is the remedy for the error text.
func (f *fields) requireUnset(name, instead string) {
	switch v := f.optionalAttr(name); v {
	case nil, false:
	default:
		f.refuse("%s=%s is not supported by Go: %s", name, showValue(v), instead)
	}
}

// readNumber returns an attribute that must be a finite number. It refuses any other value: see
// [fields.refuse].
func (f *fields) readNumber(name string) float64 {
	v := f.get(name)
	x, ok := numberOf(v)
	if f.err == nil && !ok {
		f.refuse("%s is %s, want a number", name, showValue(v))
	}
	return x
}

// readNumbers returns an attribute that must be a list or tuple of at most 64 finite numbers, or
// a single one. It refuses any other value: see [fields.refuse].
func (f *fields) readNumbers(name string) []float64 {
	v := f.get(name)
	if f.err != nil {
		return nil
	}
	x, ok := numbersOf(v)
	if !ok {
		f.refuse("%s is %s, want numbers", name, showValue(v))
	}
	return x
}

// readPair returns an attribute that must consist of two numbers. It refuses any other value and
// returns zeros: see [fields.refuse].
func (f *fields) readPair(name string) [2]float64 {
	x := f.readNumbers(name)
	if len(x) != 2 {
		f.refuse("%s has %d numbers, want 2", name, len(x))
		return [2]float64{}
	}
	return [2]float64{x[0], x[1]}
}

// readProbability returns an attribute that must be a number from 0 to 1. It refuses any other
// value: see [fields.refuse].
func (f *fields) readProbability(name string) float64 {
	p := f.readNumber(name)
	if p < 0 || p > 1 {
		f.refuse("%s is %v, want a probability", name, p)
	}
	return p
}

// mostPixels limits the height and width of images.
const mostPixels = 1 << 24

// readIntegers returns an attribute that must consist of integers from least to mostPixels. It
// refuses any other value and returns nil: see [fields.refuse].
func (f *fields) readIntegers(name string, least int) []int {
	var all []int
	for _, x := range f.readNumbers(name) {
		if x != math.Trunc(x) || x < float64(least) || x > mostPixels {
			f.refuse("%s is %v, want a number of pixels", name, x)
			return nil
		}
		all = append(all, int(x))
	}
	return all
}

// size returns the height and width in pixels from the attribute size. A single number means a
// square. It refuses any other value and returns 1, 1: see [fields.refuse].
func (f *fields) size() (h, w int) {
	s := f.readIntegers("size", 1)
	switch len(s) {
	case 1:
		return s[0], s[0]
	case 2:
		return s[0], s[1]
	}
	f.refuse("size has %d numbers, want 1 or 2", len(s))
	return 1, 1
}

func (f *fields) readFlag(name string) bool {
	v := f.get(name)
	b, ok := v.(bool)
	if f.err == nil && !ok {
		f.refuse("%s is %s, want True or False", name, showValue(v))
	}
	return b
}

// numberOf converts a finite Python or numpy number. ok is false for other values.
func numberOf(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case int64:
		x, ok = float64(v), true
	case float64:
		x, ok = v, true
	case *pickle.Scalar:
		if n, err := value.NumberOf(v); err == nil {
			return numberOf(n)
		}
	}
	return x, ok && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// listOf returns the items of a list, tuple or torch.Size. ok is false for any other value.
func listOf(v any) (items []any, ok bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case value.Tuple:
		return v, true
	case value.Size:
		for _, n := range v {
			items = append(items, int64(n))
		}
		return items, true
	}
	return nil, false
}

// mostNumbers limits the length of a list in an attribute of a transform.
const mostNumbers = 64

func numbersOf(v any) ([]float64, bool) {
	if x, ok := numberOf(v); ok {
		return []float64{x}, true
	}
	if a, ok := v.(*pickle.Array); ok {
		v, _ = value.TensorOf(a)
	}
	if t, ok := v.(*tensor.Tensor); ok {
		if t == nil || t.Numel() > mostNumbers {
			return nil, false
		}
		all := slices.Clone(tensor.Data[float64](t.Clone().To(tensor.Float64)))
		finite := !slices.ContainsFunc(all, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
		return all, finite
	}
	items, ok := listOf(v)
	if !ok || len(items) > mostNumbers {
		return nil, false
	}
	all := make([]float64, len(items))
	for i, item := range items {
		if all[i], ok = numberOf(item); !ok {
			return nil, false
		}
	}
	return all, true
}

// showValue formats a Python value for an error, roughly as Python prints it. Long strings and
// lists are cut off.
func showValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case *value.Record:
		if len(v.Args) == 1 {
			return fmt.Sprintf("%s(%v)", v.Class.Name, v.Args[0])
		}
		return v.Class.String()
	case string:
		return fmt.Sprintf("%.40q", v)
	case tensor.DType:
		return "torch." + v.String()
	case []any, value.Tuple, int64, float64, value.Global:
		return fmt.Sprintf("%.60s", fmt.Sprint(v))
	}
	return fmt.Sprintf("%T", v)
}
