package hdf5

import (
	"bytes"
	"encoding/binary"
	"io"
)

// undefined is HDF5's undefined address, which stands for a missing object.
const undefined = ^uint64(0)

// cursor decodes the fields of a structure. Reads past the end return zero values and set short, so
// a caller may read several fields and check short once.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

// uint reads a little-endian unsigned integer of n bytes. n must be at most 8.
func (c *cursor) uint(n int) uint64 {
	var word [8]byte
	copy(word[:], c.take(n))
	return binary.LittleEndian.Uint64(word[:])
}

func (c *cursor) int(n int) int { return int(c.uint(n)) }

// text reads a NUL-terminated string and skips its padding to a multiple of pad bytes.
func (c *cursor) text(pad int) string {
	end := bytes.IndexByte(c.b, 0)
	if end < 0 {
		c.short, c.b = true, nil
		return ""
	}
	s := string(c.b[:end])
	c.take((end + pad) / pad * pad)
	return s
}

// source is a file with a known size. Reads outside of it return an error that wraps [ErrFormat].
type source struct {
	r    io.ReaderAt
	size int64
}

// at reads n bytes at the given address.
func (s source) at(address uint64, n int) ([]byte, error) {
	if n < 0 || address > uint64(s.size) || uint64(n) > uint64(s.size)-address {
		return nil, malformed("%d bytes at %d exceed the file size %d", n, address, s.size)
	}
	b := make([]byte, n)
	if _, err := s.r.ReadAt(b, int64(address)); err != nil {
		return nil, err
	}
	return b, nil
}

// sealed reads n bytes like [source.signed], verifies the checksum in the last four bytes, and
// strips it.
func (s source) sealed(signature string, address uint64, n int) (*cursor, error) {
	const width = 4
	b, err := s.at(address, n)
	if err != nil {
		return nil, err
	}
	sum := &cursor{b: b[max(0, n-width):]}
	b = b[:max(0, n-width)]
	if !bytes.HasPrefix(b, []byte(signature)) || uint32(sum.uint(width)) != lookup3(b) {
		return nil, malformed("want %[2]q with a valid checksum at %[1]d", address, signature)
	}
	return &cursor{b: b[len(signature):]}, nil
}

// signed reads n bytes at the given address, verifies that they begin with the signature, and
// returns a cursor past it.
func (s source) signed(signature string, address uint64, n int) (*cursor, error) {
	b, err := s.at(address, n)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte(signature)) {
		return nil, malformed("want %[2]q at %[1]d", address, signature)
	}
	return &cursor{b: b[len(signature):]}, nil
}
