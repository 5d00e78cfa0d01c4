package python

// Set is a Python set or frozenset. It keeps its members in insertion order. The zero Set is an
// empty set. A Set must not be modified while other goroutines use it.
type Set struct {
	Frozen bool
	dict   Dict
}

// NewSet returns a set of the members, or a frozenset if frozen. Members that are equal in
// Python are added once. The error wraps [ErrKey] if a member is not hashable in Python.
func NewSet(frozen bool, members ...any) (*Set, error) {
	s := &Set{Frozen: frozen}
	for _, m := range members {
		if err := s.Add(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add adds a member, unless the set contains an equal one. The error wraps [ErrKey] if it is not
// hashable in Python. Add does not check Frozen; the caller must not change a frozenset that is
// a key.
func (s *Set) Add(member any) error {
	if s.Has(member) {
		return nil
	}
	return s.dict.Set(member, nil)
}

// Has reports whether the set contains a member that is equal in Python.
func (s *Set) Has(member any) bool {
	_, ok := s.dict.Get(member)
	return ok
}

// Members returns the members in insertion order. The caller must not modify the slice.
func (s *Set) Members() []any { return s.dict.keys }
