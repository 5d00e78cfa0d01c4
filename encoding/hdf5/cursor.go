package hdf5

import (
	"bytes"
	"encoding/binary"
	"io"
)

// undefined is HDF5's undefined address, which stands for a missing object.
const undefined = ^uint64(0)

// cursor decodes the fields of a structure. b is the part that has not been read. Reads past the
// end return zero values and set short, so a caller may read several fields and check short
// once. One goroutine may use it.
type cursor struct {
	b     []byte
	short bool
}

func (c *cursor) takeBytes(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.short, c.b = true, nil
		return nil
	}
	b := c.b[:n]
	c.b = c.b[n:]
	return b
}

// readUint reads a little-endian unsigned integer of n bytes. n must be at most 8.
func (c *cursor) readUint(n int) uint64 {
	var word [8]byte
	copy(word[:], c.takeBytes(n))
	return binary.LittleEndian.Uint64(word[:])
}

func (c *cursor) readInt(n int) int { return int(c.readUint(n)) }

// readText reads a NUL-terminated string and skips its padding to a multiple of pad bytes. If
// there is no NUL, it returns "" and sets short.
func (c *cursor) readText(pad int) string {
	end := bytes.IndexByte(c.b, 0)
	if end < 0 {
		c.short, c.b = true, nil
		return ""
	}
	s := string(c.b[:end])
	c.takeBytes((end + pad) / pad * pad)
	return s
}

// source is a file with a known size in bytes. Reads outside of it return an error that wraps
// [ErrFormat]. Its methods may be called from several goroutines.
type source struct {
	r    io.ReaderAt
	size int64
}

// readAt reads n bytes at the given address into a new slice.
func (s source) readAt(address uint64, n int) ([]byte, error) {
	if n < 0 || address > uint64(s.size) || uint64(n) > uint64(s.size)-address {
		return nil, malformed("%d bytes at %d exceed the file size %d", n, address, s.size)
	}
	b := make([]byte, n)
	if _, err := s.r.ReadAt(b, int64(address)); err != nil {
		return nil, err
	}
	return b, nil
}

// readSealed reads n bytes like [source.readSigned], verifies the checksum in the last four
// bytes, and strips it. n includes the signature and the checksum. The error wraps [ErrFormat]
// if either is wrong.
func (s source) readSealed(signature string, address uint64, n int) (*cursor, error) {
	const byteWidth = 4
	b, err := s.readAt(address, n)
	if err != nil {
		return nil, err
	}
	sum := &cursor{b: b[max(0, n-byteWidth):]}
	b = b[:max(0, n-byteWidth)]
	if !bytes.HasPrefix(b, []byte(signature)) || uint32(sum.readUint(byteWidth)) != lookup3(b) {
		return nil, malformed("want %[2]q with a valid checksum at %[1]d", address, signature)
	}
	return &cursor{b: b[len(signature):]}, nil
}

// readSigned reads n bytes at the given address, verifies that they begin with the signature,
// and returns a cursor past it. n includes the signature. The error wraps [ErrFormat] if it is
// missing.
func (s source) readSigned(signature string, address uint64, n int) (*cursor, error) {
	b, err := s.readAt(address, n)
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte(signature)) {
		return nil, malformed("want %[2]q at %[1]d", address, signature)
	}
	return &cursor{b: b[len(signature):]}, nil
}
