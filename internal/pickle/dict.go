package pickle

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strings"
)

// A Dict is a Python dict or OrderedDict: pairs in the order of their first insertion. The zero
// Dict is empty. Keys are equal where they are in Python: 1, 1.0 and True are one key.
type Dict struct {
	Ordered bool // an OrderedDict
	Attrs   any  // the state of an OrderedDict that has attributes, such as the _metadata of a state_dict
	keys    []any
	values  []any
	at      map[string]int
}

// Len returns the number of pairs.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.keys)
}

// Get returns the value of a key.
func (d *Dict) Get(key any) (v any, ok bool) {
	name, err := identity(key, 0)
	if d == nil || err != nil {
		return nil, false
	}
	i, ok := d.at[name]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set sets the value of a key; the error wraps ErrValue where Python could not hash the key.
func (d *Dict) Set(key, value any) error {
	name, err := identity(key, 0)
	if err != nil {
		return err
	}
	if i, ok := d.at[name]; ok {
		d.values[i] = value
		return nil
	}
	if d.at == nil {
		d.at = map[string]int{}
	}
	d.at[name] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
	return nil
}

// All yields the pairs in order.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(k, v any) bool) {
		for i := range d.Len() {
			if !yield(d.keys[i], d.values[i]) {
				return
			}
		}
	}
}

// NewDict returns a dict of string keys, in the order given: key, value, key, value. It panics
// where a key is no string.
func NewDict(pairs ...any) *Dict {
	d := new(Dict)
	for pair := range slices.Chunk(pairs, 2) {
		if err := d.Set(pair[0].(string), pair[1]); err != nil {
			panic(err)
		}
	}
	return d
}

// A Set is a Python set or frozenset, its members in the order of their insertion.
type Set struct {
	Frozen bool
	dict   Dict
}

// NewSet returns a set. The error wraps ErrValue where Python could not hash a member.
func NewSet(frozen bool, members ...any) (*Set, error) {
	s := &Set{Frozen: frozen}
	for _, m := range members {
		if err := s.Add(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add adds a member; see NewSet.
func (s *Set) Add(member any) error {
	if s.Has(member) {
		return nil
	}
	return s.dict.Set(member, nil)
}

// Has reports whether the set has a member.
func (s *Set) Has(member any) bool {
	_, ok := s.dict.Get(member)
	return ok
}

// Members returns the members. The slice is the set's own.
func (s *Set) Members() []any { return s.dict.keys }

// keyDepth bounds tuples in the tuples of a key.
const keyDepth = 32

// identity returns a string that two hashable values have in common where Python has them equal.
func identity(v any, depth int) (string, error) {
	if depth > keyDepth {
		return "", fmt.Errorf("a key of nested tuples: %w", ErrLimit)
	}
	switch v := v.(type) {
	case string:
		return "s" + v, nil
	case []byte:
		return "b" + string(v), nil
	case nil:
		return "n", nil
	case Global:
		return "g" + v.String(), nil
	case Tuple:
		return joined("t", v, depth)
	case *Set:
		if v.Frozen {
			return joinedSet(v, depth)
		}
	case *Object, *Persistent, *Scalar:
		return fmt.Sprintf("o%p", v), nil
	default:
		return number(v)
	}
	return "", fmt.Errorf("%w: %T is not hashable", ErrValue, v)
}

func joined(tag string, items []any, depth int) (string, error) {
	var b strings.Builder
	b.WriteString(tag)
	for _, item := range items {
		s, err := identity(item, depth+1)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%d:%s", len(s), s)
		if b.Len() > maxKey {
			return "", fmt.Errorf("a key of more than %d bytes: %w", maxKey, ErrLimit)
		}
	}
	return b.String(), nil
}

// maxKey bounds the keys that are built of others: a tuple may hold one value many times.
const maxKey = 1 << 20

func joinedSet(s *Set, depth int) (string, error) {
	names := make([]string, 0, len(s.Members()))
	for _, m := range s.Members() {
		name, err := identity(m, depth+1)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	whole := fmt.Sprintf("f%q", names)
	if len(whole) > maxKey {
		return "", fmt.Errorf("a key of more than %d bytes: %w", maxKey, ErrLimit)
	}
	return whole, nil
}

// number is the identity of numbers, which Python compares across types.
func number(v any) (string, error) {
	switch v := v.(type) {
	case bool:
		if v {
			return "i1", nil
		}
		return "i0", nil
	case int:
		return fmt.Sprint("i", v), nil
	case int64:
		return fmt.Sprint("i", v), nil
	case *big.Int:
		return "i" + v.String(), nil
	case float64:
		if v == math.Trunc(v) && !math.IsInf(v, 0) {
			whole, _ := big.NewFloat(v).Int(nil)
			return "i" + whole.String(), nil
		}
		return fmt.Sprint("d", v), nil
	case complex128:
		if imag(v) == 0 {
			return number(real(v))
		}
		return fmt.Sprint("c", v), nil
	}
	return "", fmt.Errorf("%w: %T is not hashable", ErrValue, v)
}
