package ipc

// DieInSet does what Set does until it dies, before the word says that the element is v.
func DieInSet(l *ShareableList, i int, v any) error {
	value, err := packValue(v)
	if err != nil {
		return err
	}
	return l.withEntry(i, func(p place) error {
		p.writeUnused(value)
		return nil
	})
}

// PutRaw puts a message that need not be a value of T.
func PutRaw[T any](q *Queue[T], body []byte) error { return q.sender.end.ring.TryPut(body, nil, false) }
