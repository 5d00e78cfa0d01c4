package optim

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// stateDictOf converts v to a StateDict. v must be a StateDict, a pointer to one, or a dict with
// the keys "state" and "param_groups"; otherwise the error wraps [ErrFormat].
func stateDictOf(v any) (d StateDict, err error) {
	switch v := v.(type) {
	case StateDict:
		return v, nil
	case *StateDict:
		return *v, nil
	}
	top, ok := dictOf(v)
	if !ok {
		return d, fmt.Errorf("%w: got %T, want a dict", ErrFormat, v)
	}
	groups, ok := listOf(top["param_groups"])
	states, also := pairsOf(top["state"])
	if !ok || !also {
		return d, fmt.Errorf("%w: got a dict with keys %q, want \"state\" and \"param_groups\": the state dict "+
			"may be one of its values",
			ErrFormat, slices.Sorted(maps.Keys(top)))
	}
	for i, g := range groups {
		group, ok := dictOf(g)
		if !ok {
			return d, fmt.Errorf("%w: group %d: got %T, want a dict", ErrFormat, i, g)
		}
		d.ParamGroups = append(d.ParamGroups, group)
	}
	d.State = map[int]map[string]any{}
	for key, s := range states {
		n, whole := wholeOf(key)
		state, ok := dictOf(s)
		if !ok || !whole {
			return d, fmt.Errorf("%w: state of parameter %v: got %T, want a dict with a whole number as its key",
				ErrFormat, key, s)
		}
		d.State[n] = state
	}
	return d, nil
}

// dictOf converts v to a map with string keys. It reports false if v is no dict or has other keys.
func dictOf(v any) (map[string]any, bool) {
	if d, ok := v.(map[string]any); ok {
		return d, true
	}
	pairs, ok := pairsOf(v)
	if !ok {
		return nil, false
	}
	d := map[string]any{}
	for k, item := range pairs {
		key, ok := k.(string)
		if !ok {
			return nil, false
		}
		d[key] = item
	}
	return d, true
}

// pairsOf returns the pairs of a dict. It reports false if v is no dict.
func pairsOf(v any) (iter.Seq2[any, any], bool) {
	switch v := v.(type) {
	case *pickle.Dict:
		return v.All(), v != nil
	case map[string]any:
		return iterateMap(v), true
	case map[int]map[string]any:
		return iterateMap(v), true
	case map[int]int:
		return iterateMap(v), true
	}
	return nil, false
}

func iterateMap[K comparable, V any](m map[K]V) iter.Seq2[any, any] {
	return func(yield func(k, v any) bool) {
		for k, v := range m {
			if !yield(k, v) {
				return
			}
		}
	}
}

// wholeOf returns v as an int. It reports false if v is no integer or overflows.
func wholeOf(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case int64:
		return int(v), int64(int(v)) == v
	}
	return 0, false
}

// numbersOf converts a list to integers. It reports false if v is no list of integers.
func numbersOf(v any) ([]int, bool) {
	items, ok := listOf(v)
	list := make([]int, len(items))
	for i, item := range items {
		var whole bool
		list[i], whole = wholeOf(item)
		ok = ok && whole
	}
	return list, ok
}

// unexpectedKeys returns an error that wraps [ErrUnexpected] for each key of d that is not in
// known.
func unexpectedKeys(d map[string]any, known []string) (problems []error) {
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if !slices.Contains(known, key) {
			problems = append(problems, fmt.Errorf("%s: %w", key, ErrUnexpected))
		}
	}
	return problems
}
