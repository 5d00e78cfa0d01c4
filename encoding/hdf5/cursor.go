package hdf5

import (
	"bytes"
	"encoding/binary"
	"io"
)

// undefined is the address of nothing.
const undefined = ^uint64(0)

// A cursor reads the fields of a structure. Beyond its end all fields are 0 and the cursor is
// short.
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

// uint reads a little-endian number of n bytes, at most 8.
func (c *cursor) uint(n int) uint64 {
	var word [8]byte
	copy(word[:], c.take(n))
	return binary.LittleEndian.Uint64(word[:])
}

func (c *cursor) int(n int) int { return int(c.uint(n)) }

// text reads up to a zero byte, and on to a multiple of pad bytes from where it began.
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

// A source is the bytes of a file, all of them within its size.
type source struct {
	r    io.ReaderAt
	size int64
}

// at reads n bytes at an address.
func (s source) at(address uint64, n int) ([]byte, error) {
	if n < 0 || address > uint64(s.size) || uint64(n) > uint64(s.size)-address {
		return nil, malformed("%d bytes at %d are not in a file of %d", n, address, s.size)
	}
	b := make([]byte, n)
	if _, err := s.r.ReadAt(b, int64(address)); err != nil {
		return nil, err
	}
	return b, nil
}

// sealed is signed for what ends in a checksum of itself, which it leaves out.
func (s source) sealed(signature string, address uint64, n int) (*cursor, error) {
	const width = 4
	b, err := s.at(address, n)
	if err != nil {
		return nil, err
	}
	sum := &cursor{b: b[max(0, n-width):]}
	b = b[:max(0, n-width)]
	if !bytes.HasPrefix(b, []byte(signature)) || uint32(sum.uint(width)) != lookup3(b) {
		return nil, malformed("at %d is no %q, or its checksum is another", address, signature)
	}
	return &cursor{b: b[len(signature):]}, nil
}

// signed reads n bytes at an address, which begin with a signature, and returns what is after it.
func (s source) signed(signature string, address uint64, n int) (*cursor, error) {
	b, err := s.at(address, n)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte(signature)) {
		return nil, malformed("at %d is no %q", address, signature)
	}
	return &cursor{b: b[len(signature):]}, nil
}
