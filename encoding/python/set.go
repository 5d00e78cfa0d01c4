package python

// A Set is a Python set or frozenset, its members in the order of their insertion.
type Set struct {
	Frozen bool
	dict   Dict
}

// NewSet returns a set. The error wraps ErrKey where Python could not hash a member.
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
