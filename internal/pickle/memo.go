package pickle

// memo holds values by index. Python assigns consecutive indices. The zero value is empty.
type memo struct {
	dense  []any
	sparse map[uint64]any // values with non-consecutive indices
}

// memoRoom is the initial capacity, sufficient for a message with a tensor.
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
