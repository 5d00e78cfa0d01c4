package hdf5

import (
	"encoding/binary"
	"errors"
)

const signature = "\x89HDF\r\n\x1a\n"

// signatureOffset returns the offset of the signature in bytes, which is 0, 512, or 512 times a
// power of two. Other programs, such as MATLAB, store a user block before it. The error wraps
// [ErrFormat] if there is none.
func (s source) signatureOffset() (int64, error) {
	for at := int64(0); at < s.size; at = max(512, 2*at) {
		if _, err := s.readSigned(signature, uint64(at), len(signature)); !errors.Is(err, ErrFormat) {
			return at, err
		}
	}
	return 0, malformed("no HDF5 signature at the start or after a user block")
}

// readSuperblock returns the address of the root group's object header. The superblock must be
// at the start of s. The error wraps [ErrFormat], or [ErrUnsupported] for an unknown version or
// address size.
func (s source) readSuperblock() (root uint64, err error) {
	c, err := s.readSigned(signature, 0, int(min(s.size, 96)))
	if err != nil {
		return 0, err
	}
	whole := c.b
	version := c.readInt(1)
	var offsets, lengths int
	switch version {
	case 0, 1:
		c.takeBytes(4)
		offsets, lengths = c.readInt(1), c.readInt(1)
		c.takeBytes(9 + 4*version)
		c.takeBytes(8) // base address when written; libhdf5 also uses the actual one
		c.takeBytes(24 + 8)
		root = c.readUint(8)
	case 2, 3:
		offsets, lengths = c.readInt(1), c.readInt(1)
		c.takeBytes(1)
		c.takeBytes(8) // base address when written; libhdf5 also uses the actual one
		c.takeBytes(16)
		root = c.readUint(8)
		if sum := c.readUint(4); !c.short && uint32(sum) != lookup3(append([]byte(signature), whole[:36]...)) {
			return 0, malformed("wrong checksum of the superblock")
		}
	default:
		return 0, unsupported("version %d of the superblock", version)
	}
	switch {
	case c.short:
		return 0, malformed("the superblock is cut short")
	case offsets != 8 || lengths != 8:
		return 0, unsupported("addresses of %d bytes and lengths of %d", offsets, lengths)
	}
	return root, nil
}

// superblock holds the fields of the superblock that [Append] needs. [source.readAppendFields]
// reads it.
type superblock struct {
	bytes    []byte
	version  int
	endAt    int    // offset in bytes of the end-of-file address
	fanout   int    // children per chunk B-tree node
	extended bool   // there is a superblock extension
	symbols  int    // entries per symbol table node
	children int    // children per group B-tree node
	known    uint64 // address of the root group's cached symbol table; 0 if none
}

// readAppendFields reads the fields that [Append] needs. The version must have been checked by
// [source.readSuperblock].
func (s source) readAppendFields() (superblock, error) {
	b, err := s.readAt(0, superblockSize)
	if err != nil {
		return superblock{}, err
	}
	const symbols, children = 8, 32
	block := superblock{bytes: b, version: int(b[8]), fanout: fanout, symbols: symbols, children: children}
	if block.version < 2 {
		const leaf = 16
		block.symbols, block.children = 2*int(le.Uint16(b[leaf:])), 2*int(le.Uint16(b[leaf+2:]))
	}
	switch block.version {
	case 0:
		const end, root = 40, 80
		block.endAt, block.known = end, root
		block.bytes, err = s.readAt(0, end+8)
	case 1:
		const each, end, root = 24, 44, 84
		block.endAt, block.known, block.fanout = end, root, 2*int(le.Uint16(b[each:]))
		block.bytes, err = s.readAt(0, end+8)
	default:
		const extension, end = 20, 28
		block.endAt, block.extended = end, le.Uint64(b[extension:]) != undefined
	}
	return block, err
}

// appendSuperblock appends a superblock of version 2. root is the address of the root group's
// header, and size is the size of the file in bytes.
func appendSuperblock(b []byte, root, size uint64) []byte {
	from := len(b)
	b = append(append(b, signature...), 2, 8, 8, 0)
	for _, v := range []uint64{0, undefined, size, root} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return binary.LittleEndian.AppendUint32(b, lookup3(b[from:]))
}

// superblockSize is the size in bytes of a superblock of version 2.
const superblockSize = 48
