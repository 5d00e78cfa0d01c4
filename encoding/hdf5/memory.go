package hdf5

import (
	"bytes"
	"slices"
)

// memory is an in-memory file, used by [Encode]. The zero value is empty. One goroutine may use
// it.
type memory struct{ bytes []byte }

// Truncate changes the size of the file in bytes. New bytes are zero. It always returns nil.
func (m *memory) Truncate(size int64) error {
	old := len(m.bytes)
	m.bytes = slices.Grow(m.bytes, max(0, int(size)-old))[:size]
	clear(m.bytes[min(old, int(size)):])
	return nil
}

// WriteAt implements [io.WriterAt]. It extends the file if necessary.
func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if end := at + int64(len(b)); end > int64(len(m.bytes)) {
		m.Truncate(end)
	}
	return copy(m.bytes[at:], b), nil
}

// ReadAt implements [io.ReaderAt].
func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(m.bytes).ReadAt(b, at)
}
