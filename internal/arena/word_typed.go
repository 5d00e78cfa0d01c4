package arena

// A wordOf is a Word whose values are all of one kind, with methods that name their parts. In crash
// builds it panics where a value follows another one that it may not follow.
type wordOf[T law[T]] struct{ Word }

// A law says of a kind of words how they may change.
type law[T any] interface {
	~uint64
	// step returns the name of the transition from this word to next, or "" if there is none.
	step(next T) string
	// String says what the word says.
	String() string
}

// Load returns the word.
func (w *wordOf[T]) Load() T { return T(w.Word.Load()) }

// CAS is Word.CAS.
func (w *wordOf[T]) CAS(old, new T) bool {
	if crashing {
		obey(old, new)
	}
	return w.Word.CAS(uint64(old), uint64(new))
}

// Store is Word.Store.
func (w *wordOf[T]) Store(v T) {
	if crashing {
		obey(T(w.v.Load()), v)
	}
	w.Word.Store(uint64(v))
}

// Set is Word.Set.
func (w *wordOf[T]) Set(v T) {
	if crashing {
		obey(T(w.v.Load()), v)
	}
	w.Word.Set(uint64(v))
}

// A rule is one row of a table of transitions.
type rule[T any] struct {
	name  string
	legal func(old, next T) bool
}

func nameOf[T any](rules []rule[T], old, next T) string {
	for _, r := range rules {
		if r.legal(old, next) {
			return r.name
		}
	}
	return ""
}
