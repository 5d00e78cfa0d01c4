package optim

import (
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// A setting is an entry of a dict of PyTorch's, and where it stands here.
type setting struct {
	key  string
	must bool              // be there
	get  func() any        // what is written
	set  func(v any) error // takes what was read; nil where nothing here depends on it
}

// number is a setting that every version of PyTorch writes.
func number(key string, p *float64) setting {
	return setting{key, true, func() any { return *p }, func(v any) error { return setNumber(p, v) }}
}

// whole is a number for what is counted.
func whole(key string, p *int) setting {
	return setting{key, true, func() any { return *p }, func(v any) error {
		var x float64
		if err := setNumber(&x, v); err != nil {
			return err
		}
		if *p = int(x); float64(*p) != x {
			return fmt.Errorf("%w: %v is no whole number", ErrFormat, x)
		}
		return nil
	}}
}

// counted is a whole number that is at least least.
func counted(key string, p *int, least int) setting {
	s := whole(key, p)
	set := s.set
	s.set = func(v any) error {
		if err := set(v); err != nil || *p >= least {
			return err
		}
		return fmt.Errorf("%w: %d, and it is at least %d", ErrFormat, *p, least)
	}
	return s
}

// optional is a number that is nil here where it is PyTorch's default, which PyTorch spells out.
func optional(key string, p **float64, otherwise float64) setting {
	return setting{key, true, func() any { return or(*p, otherwise) }, func(v any) error {
		var x float64
		err := setNumber(&x, v)
		*p = &x
		return err
	}}
}

// optionalCount is a whole number that is nil here where it is PyTorch's default.
func optionalCount(key string, p **int, otherwise int) setting {
	return setting{key, true, func() any { return or(*p, otherwise) }, func(v any) error {
		var x int
		*p = &x
		return whole(key, &x).set(v)
	}}
}

// text is one of several words.
func text(key string, p *string, words ...string) setting {
	return setting{key, true, func() any { return *p }, func(v any) error {
		word, _ := v.(string)
		if !slices.Contains(words, word) {
			return fmt.Errorf("%w: %v instead of one of %q", ErrFormat, v, words)
		}
		*p = word
		return nil
	}}
}

// flag is a setting that older versions of PyTorch have not: it is false there.
func flag(key string, p *bool) setting {
	return setting{key, false, func() any { return *p }, func(v any) error {
		on, ok := v.(bool)
		if !ok {
			return fmt.Errorf("%w: %T instead of True or False", ErrFormat, v)
		}
		*p = on
		return nil
	}}
}

// pair is a tuple of two numbers, which are nil here where they are PyTorch's defaults.
func pair(key string, p **[2]float64, otherwise [2]float64) setting {
	return setting{key, true, func() any { return or(*p, otherwise) }, func(v any) error {
		items, ok := listOf(v)
		if !ok || len(items) != 2 {
			return fmt.Errorf("%w: %v instead of two numbers", ErrFormat, v)
		}
		var x [2]float64
		*p = &x
		if err := setNumber(&x[0], items[0]); err != nil {
			return err
		}
		return setNumber(&x[1], items[1])
	}}
}

// fixed is what PyTorch wants to find, and nothing here depends on.
func fixed(key string, v any) setting { return setting{key, false, func() any { return v }, nil} }

// write returns the entries.
func write(settings []setting) map[string]any {
	d := map[string]any{}
	for _, s := range settings {
		d[s.key] = s.get()
	}
	return d
}

// read takes the entries of d, and returns a problem for each that is wrong. Those of known are
// left alone.
func read(settings []setting, d map[string]any, known ...string) (problems []error) {
	for _, s := range settings {
		known = append(known, s.key)
		v, ok := d[s.key]
		switch {
		case !ok && s.must:
			problems = append(problems, fmt.Errorf("%s: %w", s.key, ErrMissing))
		case ok && s.set != nil:
			if err := s.set(v); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", s.key, err))
			}
		}
	}
	return append(problems, unexpected(d, known)...)
}

func setNumber(p *float64, v any) error {
	x, ok := numberOf(v)
	if !ok {
		return fmt.Errorf("%w: %T instead of a number", ErrFormat, v)
	}
	*p = x
	return nil
}

// numberOf returns the number that v is, in Python or here: PyTorch keeps counts of steps, and
// learning rates that are captured, in tensors.
func numberOf(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case *tensor.Tensor:
		if v == nil || v.Numel() != 1 || v.DType() == tensor.Complex64 || v.DType() == tensor.Complex128 {
			return 0, false
		}
		return v.Item(), true
	}
	return 0, false
}

// listOf returns the items of a list or tuple, of Python or of the types that are written here.
func listOf(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case pickle.Tuple:
		return v, true
	case [2]float64:
		return []any{v[0], v[1]}, true
	case []int:
		return anys(v), true
	case []float64:
		return anys(v), true
	case []map[string]any:
		return anys(v), true
	}
	return nil, false
}

func anys[T any](list []T) []any {
	items := make([]any, len(list))
	for i, v := range list {
		items[i] = v
	}
	return items
}

// same is a setting that says which class it is: it can be read where it is as it was.
func same(key string, v bool) setting {
	return setting{key, false, func() any { return v }, func(got any) error {
		if got != v {
			return fmt.Errorf("%v instead of %v: %w: Adam adds the weight decay to gradients, AdamW takes it from parameters", got, v, ErrClass)
		}
		return nil
	}}
}
