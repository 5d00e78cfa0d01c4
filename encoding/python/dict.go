package python

import (
	"iter"
	"slices"
)

// Dict is a Python dict or OrderedDict. It keeps its pairs in insertion order. The zero Dict is
// empty. Keys are equal if they are equal in Python: 1, 1.0 and True are the same key. A Dict must
// not be modified while other goroutines use it.
type Dict struct {
	Ordered bool // an OrderedDict
	Attrs   any  // attributes of an OrderedDict, such as the _metadata of a state_dict
	keys    []any
	values  []any
	at      map[string]int
}

// Len returns the number of pairs. A nil Dict is empty.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.keys)
}

// Get returns the value of a key. ok is false if there is no such key, or if key is not hashable in
// Python.
func (d *Dict) Get(key any) (v any, ok bool) {
	name, err := equalityKey(key, 0)
	if d == nil || err != nil {
		return nil, false
	}
	i, ok := d.at[name]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set sets the value of a key. A new key is added at the end. If an equal key exists, its value
// is replaced, and the key itself is kept. The error wraps [ErrKey] if the key is not hashable
// in Python. d must not be nil.
func (d *Dict) Set(key, value any) error {
	name, err := equalityKey(key, 0)
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

// All iterates over the pairs in insertion order. A nil Dict is empty. Pairs that are added during
// the iteration are not visited.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(k, v any) bool) {
		for i := range d.Len() {
			if !yield(d.keys[i], d.values[i]) {
				return
			}
		}
	}
}

// NewDict returns a dict with the given keys and values, which must alternate. It panics if a key
// is not a string, or if the last key has no value.
func NewDict(pairs ...any) *Dict {
	d := new(Dict)
	for pair := range slices.Chunk(pairs, 2) {
		if err := d.Set(pair[0].(string), pair[1]); err != nil {
			panic(err)
		}
	}
	return d
}
