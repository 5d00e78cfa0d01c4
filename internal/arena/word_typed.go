package arena

// A wordOf is a [Word] with values of one type, which has methods for the fields of the word. In
// crash builds it panics at a change that the type's table of transitions does not allow.
type wordOf[T law[T]] struct{ Word }

// A law defines the legal transitions of one type of word.
type law[T any] interface {
	~uint64
	// transitionName returns the name of the transition from this word to next, or "" if it is
	// illegal.
	transitionName(next T) string
	// String formats the fields of the word.
	String() string
}

// Load returns the word's value.
func (w *wordOf[T]) Load() T { return T(w.Word.Load()) }

// CAS is [Word.CAS].
func (w *wordOf[T]) CAS(old, new T) bool {
	if crashing {
		checkTransition(old, new)
	}
	return w.Word.CAS(uint64(old), uint64(new))
}

// Store is [Word.Store].
func (w *wordOf[T]) Store(v T) {
	if crashing {
		checkTransition(T(w.v.Load()), v)
	}
	w.Word.Store(uint64(v))
}

// Set is [Word.Set].
func (w *wordOf[T]) Set(v T) {
	if crashing {
		checkTransition(T(w.v.Load()), v)
	}
	w.Word.Set(uint64(v))
}

// A rule is one row of a table of transitions.
type rule[T any] struct {
	name  string
	legal func(old, next T) bool
}

func ruleName[T any](rules []rule[T], old, next T) string {
	for _, r := range rules {
		if r.legal(old, next) {
			return r.name
		}
	}
	return ""
}
