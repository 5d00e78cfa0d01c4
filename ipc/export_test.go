package ipc

// DieInSet does what Set does until it dies, before the word says that the element is v.
func DieInSet(l *ShareableList, i int, v any) error {
	value, err := pack(v)
	if err != nil {
		return err
	}
	return l.with(i, func(p place) error {
		p.write(value)
		return nil
	})
}
