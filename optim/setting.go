package optim

import (
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// setting connects an entry of a PyTorch dict to a Go variable.
type setting struct {
	key  string
	must bool              // report ErrMissing if the entry is missing
	get  func() any        // returns the value to write
	set  func(v any) error // stores a value that was read; nil to ignore it
}

// numberSetting returns a required setting for the float *p. All versions of PyTorch write it.
func numberSetting(key string, p *float64) setting {
	return setting{key, true, func() any { return *p }, func(v any) error { return setNumber(p, v) }}
}

// intSetting returns a required setting for the integer *p.
func intSetting(key string, p *int) setting {
	return setting{key, true, func() any { return *p }, func(v any) error {
		var x float64
		if err := setNumber(&x, v); err != nil {
			return err
		}
		if *p = int(x); float64(*p) != x {
			return fmt.Errorf("%w: got %v, want a whole number", ErrFormat, x)
		}
		return nil
	}}
}

// boundedSetting is like intSetting with a lower bound. Decoding a smaller number returns an
// error that wraps [ErrFormat].
func boundedSetting(key string, p *int, least int) setting {
	s := intSetting(key, p)
	set := s.set
	s.set = func(v any) error {
		if err := set(v); err != nil || *p >= least {
			return err
		}
		return fmt.Errorf("%w: got %d, want at least %d", ErrFormat, *p, least)
	}
	return s
}

// optionalSetting returns a required setting for the float **p. *p is nil for PyTorch's default,
// otherwise, which PyTorch writes explicitly.
func optionalSetting(key string, p **float64, otherwise float64) setting {
	return setting{key, true, func() any { return valueOr(*p, otherwise) }, func(v any) error {
		var x float64
		err := setNumber(&x, v)
		*p = &x
		return err
	}}
}

// optionalIntSetting is like optionalSetting for an integer.
func optionalIntSetting(key string, p **int, otherwise int) setting {
	return setting{key, true, func() any { return valueOr(*p, otherwise) }, func(v any) error {
		var x int
		*p = &x
		return intSetting(key, &x).set(v)
	}}
}

// textSetting returns a required setting for the string *p, which must be one of words.
func textSetting(key string, p *string, words ...string) setting {
	return setting{key, true, func() any { return *p }, func(v any) error {
		word, _ := v.(string)
		if !slices.Contains(words, word) {
			return fmt.Errorf("%w: got %v, want one of %q", ErrFormat, v, words)
		}
		*p = word
		return nil
	}}
}

// flagSetting returns a setting for *p that may be missing, because older versions of PyTorch do
// not write it. *p is unchanged then, but false after the load of an optimizer.
func flagSetting(key string, p *bool) setting {
	return setting{key, false, func() any { return *p }, func(v any) error {
		on, ok := v.(bool)
		if !ok {
			return fmt.Errorf("%w: got %T, want True or False", ErrFormat, v)
		}
		*p = on
		return nil
	}}
}

// pairSetting is like optionalSetting for two floats, which are a tuple in PyTorch.
func pairSetting(key string, p **[2]float64, otherwise [2]float64) setting {
	return setting{key, true, func() any { return valueOr(*p, otherwise) }, func(v any) error {
		items, ok := listOf(v)
		if !ok || len(items) != 2 {
			return fmt.Errorf("%w: got %v, want two numbers", ErrFormat, v)
		}
		var x [2]float64
		*p = &x
		if err := setNumber(&x[0], items[0]); err != nil {
			return err
		}
		return setNumber(&x[1], items[1])
	}}
}

// fixedSetting returns a setting with the constant value v, which PyTorch requires. It is ignored
// when read.
func fixedSetting(key string, v any) setting {
	return setting{key, false, func() any { return v }, nil}
}

// encodeSettings returns a dict with the value of each setting.
func encodeSettings(settings []setting) map[string]any {
	d := map[string]any{}
	for _, s := range settings {
		d[s.key] = s.get()
	}
	return d
}

// decodeSettings stores the entries of d by settings. It returns an error for each entry that is
// invalid, required but missing ([ErrMissing]), or neither in settings nor in known
// ([ErrUnexpected]).
func decodeSettings(settings []setting, d map[string]any, known ...string) (problems []error) {
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
	return append(problems, unexpectedKeys(d, known)...)
}

func setNumber(p *float64, v any) error {
	x, ok := numberOf(v)
	if !ok {
		return fmt.Errorf("%w: got %T, want a number", ErrFormat, v)
	}
	*p = x
	return nil
}

// numberOf converts v to a float64; ok is false if v is no real number. Single-element tensors
// are accepted too, because PyTorch stores step counts and capturable learning rates in tensors.
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

// listOf returns the items of a list or tuple, decoded from a pickle or of the Go types that this
// package writes. It reports false for other values.
func listOf(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case pickle.Tuple:
		return v, true
	case [2]float64:
		return []any{v[0], v[1]}, true
	case []int:
		return anySlice(v), true
	case []float64:
		return anySlice(v), true
	case []map[string]any:
		return anySlice(v), true
	}
	return nil, false
}

func anySlice[T any](list []T) []any {
	items := make([]any, len(list))
	for i, v := range list {
		items[i] = v
	}
	return items
}

// exactSetting returns a setting that is part of the class: v distinguishes Adam from AdamW.
// Decoding another value returns an error that wraps [ErrClass]. The entry may be missing.
func exactSetting(key string, v bool) setting {
	return setting{key, false, func() any { return v }, func(got any) error {
		if got != v {
			return fmt.Errorf("got %v, want %v: %w: Adam adds the weight decay to gradients, AdamW subtracts it "+
				"from parameters",
				got, v, ErrClass)
		}
		return nil
	}}
}
