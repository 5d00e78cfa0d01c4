package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// errOption is wrapped by errors about missing or invalid options.
var errOption = errors.New("option")

// optionKinds describes the values of options, by the types of their fields.
var optionKinds = map[string]string{
	"bool": "a bool", "string": "a str", "int": "an int", "int64": "an int", "*int64": "an int",
	"float64": "a number", "[]float32": "a list of numbers", "[]string": "a list of str",
}

// storeOptions stores the options of a data set in the fields of the structs that dst points to,
// by their tags. A field without an option keeps its value. It returns an error for an option
// that has no field in any of the structs, and for a value that does not have the type of its
// field. The error wraps [errOption], or [torch.ErrUnsupported] for a transform of the wrong
// type.
func storeOptions(w torch.Worker, dst ...any) error {
	var names []string
	for _, part := range dst {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(part).Elem()) {
			name := f.Tag.Get("torch")
			names = append(names, name)
			v, ok := w.Args.Get(name)
			if !ok {
				continue
			}
			err := (torch.Worker{Args: python.NewDict(name, v)}).Keywords(part)
			if want := optionKinds[f.Type.String()]; err != nil && want != "" {
				return fmt.Errorf("%w %s: got %v, want %s", errOption, name, v, want)
			} else if err != nil {
				return err
			}
		}
	}
	for name := range w.Args.All() {
		if !slices.ContainsFunc(names, func(known string) bool { return name == known }) {
			return fmt.Errorf("%w %v is unknown for this data set, want one of %s",
				errOption, name, strings.Join(append(names, skipOption, retriesOption), ", "))
		}
	}
	return nil
}

// A list is an option that may be a single string or a list of strings.
type list struct{ of any }

// stringList returns the list. It returns an error that wraps [errOption] if the option is missing
// or has another type.
func (l list) stringList(option string) ([]string, error) {
	switch v := l.of.(type) {
	case string:
		return []string{v}, nil
	case python.Tuple:
		return list{[]any(v)}.stringList(option)
	case []any:
		all := make([]string, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("%w %s: item %d: got %T, want a str", errOption, option, i, item)
			}
			all[i] = s
		}
		return all, nil
	case nil:
		return nil, fmt.Errorf("%w %s is missing", errOption, option)
	}
	return nil, fmt.Errorf("%w %s: got %T, want a str or a list of str", errOption, option, l.of)
}

// expandFiles expands the path patterns of an option with [datasets.Glob]. It returns an error that
// wraps [errOption] if no file is named.
func expandFiles(option any) (paths []string, err error) {
	names, err := list{option}.stringList("paths")
	if err != nil {
		return nil, err
	}
	if paths, err = datasets.Glob(names...); err != nil {
		return nil, fmt.Errorf("%w paths: %w", errOption, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%w paths is empty", errOption)
	}
	return paths, nil
}

// readColumns reads the option columns: a list of names, or a dict from names to dtypes. A
// column with the dtype None keeps its own dtype. A missing option results in nil.
func readColumns(option any) (all []row.Column, err error) {
	d, typed := option.(*python.Dict)
	if option == nil || !typed {
		var names []string
		if option != nil {
			names, err = list{option}.stringList("columns")
		}
		for _, name := range names {
			all = append(all, row.Column{Name: name})
		}
		return all, err
	}
	for k, v := range d.All() {
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("%w columns: got name %v, want a str", errOption, k)
		}
		column := row.Column{Name: name}
		if v != nil {
			dt, err := dtype(v)
			if err != nil {
				return nil, fmt.Errorf("column %q: %w", name, err)
			}
			column.DType = &dt
		}
		all = append(all, column)
	}
	return all, nil
}

// dtype reads a torch.dtype or the name of one. The error wraps [errOption].
func dtype(option any) (tensor.DType, error) {
	switch v := option.(type) {
	case tensor.DType:
		return v, nil
	case string:
		dt, err := tensor.ParseDType(v)
		if err != nil {
			return 0, fmt.Errorf("%w dtype: %w", errOption, err)
		}
		return dt, nil
	}
	return 0, fmt.Errorf("%w dtype: got %T, want a dtype", errOption, option)
}

// parseOptions parses the options of a data set, given as a JSON object on a command line. The
// error wraps [errOption].
func parseOptions(text string) (*python.Dict, error) {
	options, err := value.OptionsOf(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOption, err)
	}
	return options, nil
}

// readSize reads an image size in pixels: (height, width), or a single number. For a single
// number, w is 0. The error wraps [errOption].
func readSize(option string, v any) (h, w int, err error) {
	if n, ok := v.(int64); ok && n > 0 && n < 1<<20 {
		return int(n), 0, nil
	}
	items, ok := v.([]any)
	if t, tuple := v.(python.Tuple); tuple {
		items, ok = t, true
	}
	if ok && len(items) == 2 && !slices.ContainsFunc(items,
		func(item any) bool { n, ok := item.(int64); return !ok || n < 1 || n >= 1<<20 }) {
		return int(items[0].(int64)), int(items[1].(int64)), nil
	}
	return 0, 0, fmt.Errorf("%w %s: got %v, want a number of pixels or (height, width)", errOption, option, v)
}

// readSquare reads an image size in pixels: (height, width), or a single number for both. The
// error wraps [errOption].
func readSquare(option string, v any) (h, w int, err error) {
	h, w, err = readSize(option, v)
	return h, cmp.Or(w, h), err
}

// readNumber reads an option that is a bool or a number of at least 0. True means yes; False and
// None mean 0. The error wraps [errOption].
func readNumber(option string, v any, yes int) (int, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case bool:
		if v {
			return yes, nil
		}
		return 0, nil
	case int64:
		if v >= 0 && v < 1<<31 {
			return int(v), nil
		}
	}
	return 0, fmt.Errorf("%w %s: got %v, want a bool or a number of at least 0", errOption, option, v)
}
