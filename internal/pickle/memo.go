package pickle

// A memo has the values that a pickle refers to again, by number. Python numbers them one after the
// other.
type memo struct {
	dense  []any
	sparse map[uint64]any // what was numbered in another way
}

// memoRoom is for what the message of a tensor has.
const memoRoom = 32

func (m *memo) len() uint64 { return uint64(len(m.dense) + len(m.sparse)) }

func (m *memo) set(at uint64, v any) {
	switch n := uint64(len(m.dense)); {
	case at < n:
		m.dense[at] = v
	case at == n:
		delete(m.sparse, at)
		if n == 0 {
			m.dense = make([]any, 0, memoRoom)
		}
		m.dense = append(m.dense, v)
	default:
		if m.sparse == nil {
			m.sparse = map[uint64]any{}
		}
		m.sparse[at] = v
	}
}

func (m *memo) get(at uint64) (v any, ok bool) {
	if at < uint64(len(m.dense)) {
		return m.dense[at], true
	}
	v, ok = m.sparse[at]
	return v, ok
}
