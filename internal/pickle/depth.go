package pickle

import "fmt"

// walk visits values, each container once, and checks their nesting depth. One goroutine may use
// it.
type walk struct {
	limit int
	seen  map[any]bool
}

// checkDepth returns an error that wraps [ErrLimit] if values nest deeper than limit. Callers may
// recurse over a value that has been checked.
func checkDepth(v any, limit int) error {
	w := walk{limit, map[any]bool{}}
	return w.visit(v, 0)
}

// span identifies a nonempty tuple, by its first element and its length.
type span struct {
	first *any
	n     int
}

// identityOf returns a comparable value that identifies a container, or nil if v is an empty
// tuple or no container.
func identityOf(v any) any {
	switch v := v.(type) {
	case Tuple:
		if len(v) > 0 {
			return span{&v[0], len(v)}
		}
	case *List, *Dict, *Set, *Object, *Persistent:
		return v
	}
	return nil
}

func (w *walk) visit(v any, depth int) error {
	at := identityOf(v)
	if at == nil || w.seen[at] {
		return nil
	}
	w.seen[at] = true
	if depth >= w.limit {
		return fmt.Errorf("values nest deeper than %d: %w", w.limit, ErrLimit)
	}
	for child := range eachChild(v) {
		if err := w.visit(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// eachChild iterates over the direct children of a container. It yields nothing for another
// value.
func eachChild(v any) func(yield func(any) bool) {
	return func(yield func(any) bool) {
		switch v := v.(type) {
		case Tuple:
			yieldAll(yield, v)
		case *List:
			yieldAll(yield, v.Items)
		case *Set:
			yieldAll(yield, v.Members())
		case *Persistent:
			yield(v.ID)
		case *Dict:
			for key, value := range v.All() {
				if !yield(key) || !yield(value) {
					return
				}
			}
			yield(v.Attrs)
		case *Object:
			_ = yield(v.Args) && (v.Kwargs == nil || yield(v.Kwargs)) && yield(v.State) &&
				yieldAll(yield, v.List) && (v.Dict == nil || yield(v.Dict))
		}
	}
}

func yieldAll(yield func(any) bool, values []any) bool {
	for _, v := range values {
		if !yield(v) {
			return false
		}
	}
	return true
}

// Each iterates over all containers of type T in a value and in the values within it, each of
// them once. The value itself is included.
func Each[T any](v any) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		seen := map[any]bool{}
		var visit func(v any) bool
		visit = func(v any) bool {
			at := identityOf(v)
			if at == nil || seen[at] {
				return true
			}
			seen[at] = true
			if o, ok := v.(T); ok && !yield(o) {
				return false
			}
			for child := range eachChild(v) {
				if !visit(child) {
					return false
				}
			}
			return true
		}
		visit(v)
	}
}

// Identity returns a comparable value that identifies a container, or nil if v is an empty tuple
// or not a container.
func Identity(v any) any { return identityOf(v) }
