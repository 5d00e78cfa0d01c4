package hdf5

// DieAfter has nothing reach the file after so many writes, as if the process had died, and returns
// whether it came to that.
func DieAfter(a *Writer, writes int) (died func() bool) {
	m := &mortal{file: a.to, left: writes}
	a.to = m
	return func() bool { return m.dead }
}

type mortal struct {
	file interface {
		WriteAt(b []byte, at int64) (int, error)
		Truncate(size int64) error
	}
	left int
	dead bool
}

func (m *mortal) WriteAt(b []byte, at int64) (int, error) {
	if m.left == 0 {
		m.dead = true
		return len(b), nil
	}
	m.left--
	return m.file.WriteAt(b, at)
}

func (m *mortal) Truncate(size int64) error { return m.file.Truncate(size) }
