package hdf5

import (
	"bytes"
	"slices"
)

// memory is a file that is nowhere but in memory.
type memory struct{ bytes []byte }

// Truncate makes the file longer or shorter.
func (m *memory) Truncate(size int64) error {
	old := len(m.bytes)
	m.bytes = slices.Grow(m.bytes, max(0, int(size)-old))[:size]
	clear(m.bytes[min(old, int(size)):])
	return nil
}

// WriteAt writes over the bytes at an offset, and makes the file longer where it ends before.
func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if end := at + int64(len(b)); end > int64(len(m.bytes)) {
		m.Truncate(end)
	}
	return copy(m.bytes[at:], b), nil
}

// ReadAt reads the bytes at an offset.
func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	return bytes.NewReader(m.bytes).ReadAt(b, at)
}
