package python

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// keyDepth is the maximum nesting depth of tuples in a key.
const keyDepth = 32

// equalityKey returns a string that two hashable values have in common if and only if they are
// equal in Python. An object is equal only to itself. depth is the number of tuples and frozensets
// around v; it must be 0 for a key itself. The error wraps [ErrKey] if v is not hashable, nests
// deeper than keyDepth, or has a key longer than maxKey.
func equalityKey(v any, depth int) (string, error) {
	if depth > keyDepth {
		return "", fmt.Errorf("%w: tuples nest deeper than %d", ErrKey, keyDepth)
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
		return joinKeys("t", v, depth)
	case *Set:
		if v.Frozen {
			return joinSetKeys(v, depth)
		}
	case *Scalar, interface{ PythonObject() }: // objects are compared by identity
		return fmt.Sprintf("o%p", v), nil
	default:
		return numberKey(v)
	}
	return "", fmt.Errorf("%w: %T is not hashable", ErrKey, v)
}

// joinKeys returns the key of a sequence of items; see equalityKey, which has the errors. depth
// is the number of tuples and frozensets around the sequence. tag distinguishes the types of
// sequences.
func joinKeys(tag string, items []any, depth int) (string, error) {
	var b strings.Builder
	b.WriteString(tag)
	for _, item := range items {
		s, err := equalityKey(item, depth+1)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%d:%s", len(s), s)
		if b.Len() > maxKey {
			return "", fmt.Errorf("%w: key has more than %d bytes", ErrKey, maxKey)
		}
	}
	return b.String(), nil
}

// maxKey is the maximum size of a composite key. It must be bounded because a tuple may contain the
// same value many times.
const maxKey = 1 << 20

// joinSetKeys returns the key of a frozenset, which does not depend on the order of its members;
// see equalityKey, which has the errors. depth is the number of tuples and frozensets around s.
func joinSetKeys(s *Set, depth int) (string, error) {
	names := make([]string, 0, len(s.Members()))
	for _, m := range s.Members() {
		name, err := equalityKey(m, depth+1)
		if err != nil {
			return "", err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	whole := fmt.Sprintf("f%q", names)
	if len(whole) > maxKey {
		return "", fmt.Errorf("%w: key has more than %d bytes", ErrKey, maxKey)
	}
	return whole, nil
}

// numberKey returns the key of a number; see equalityKey. Python compares numbers across types, so
// 1, 1.0 and True have the same key. The error wraps [ErrKey] if v is not a number.
func numberKey(v any) (string, error) {
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
			return numberKey(real(v))
		}
		return fmt.Sprint("c", v), nil
	}
	return "", fmt.Errorf("%w: %T is not hashable", ErrKey, v)
}
