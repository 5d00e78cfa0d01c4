package hdf5

import "math/bits"

// heap is a reader of a fractal heap, which stores the links and attributes of large groups.
// [source.openHeap] makes it, and one goroutine may use it. A heap is a table of blocks with a
// fixed number of blocks per row. The block size doubles with each row, except that the first
// two rows have equal sizes. In rows beyond the maximum direct block size, each block is an
// indirect block with a table of its own.
type heap struct {
	source
	offset, length int    // widths of these fields in a heap ID
	width          uint64 // blocks per row
	start, direct  uint64 // starting and maximum direct block sizes
	root           uint64
	rows           int    // of the root block, 0 if it is a direct block
	huge           uint64 // address of the B-tree of huge objects, which are stored outside of the blocks
	placed         bool   // heap IDs locate huge objects; no B-tree
	places         map[uint64]block
}

// openHeap reads the header of the fractal heap at the given address. The error wraps
// [ErrUnsupported] if the heap is compressed, and [ErrFormat] if the header is malformed.
func (s source) openHeap(address uint64) (*heap, error) {
	c, err := s.readSigned("FRHP", address, 146)
	if err != nil {
		return nil, err
	}
	h := &heap{source: s}
	version, id, filters := c.readInt(1), c.readInt(2), c.readInt(2)
	c.takeBytes(1)
	most := c.readUint(4)
	c.takeBytes(8) // the next huge object ID
	h.huge = c.readUint(8)
	c.takeBytes(10 * 8)
	h.placed = id >= 1+8+8 // large enough for an address and a length
	h.width, h.start, h.direct = c.readUint(2), c.readUint(8), c.readUint(8)
	limit := c.readInt(2)
	c.takeBytes(2)
	h.root, h.rows = c.readUint(8), c.readInt(2)
	switch {
	case filters != 0:
		return nil, unsupported("links or attributes in a heap that is compressed")
	case version != 0 || limit > 64 || h.width == 0 || !isPowerOfTwo(h.width) || !isPowerOfTwo(h.start) ||
		!isPowerOfTwo(h.direct) || h.direct < h.start || h.rows > limit:
		return nil, malformed("the heap at %d", address)
	}
	if _, err := s.readSealed("FRHP", address, 146); err != nil {
		return nil, err
	}
	h.offset, h.length = (limit+7)/8, byteWidth(min(h.direct, most))
	return h, nil
}

func isPowerOfTwo(n uint64) bool { return bits.OnesCount64(n) == 1 && n < 1<<40 }

// get returns a cursor on the object with the heap ID that id contains. The object may be
// managed, huge or tiny. The error wraps [ErrFormat] if there is no such object.
func (h *heap) get(id *cursor) (*cursor, error) {
	switch kind := id.readInt(1); {
	case kind>>6 != 0:
		return nil, malformed("a place in a heap of version %d", kind>>6)
	case kind>>4 == 1:
		return h.getHuge(id)
	case kind>>4 == 2:
		return &cursor{b: id.takeBytes(kind&15 + 1)}, nil
	}
	at, n := id.readUint(h.offset), id.readUint(h.length)
	if id.short || n > maxHeader {
		return nil, malformed("%d bytes at %d of a heap", n, at)
	}
	b, err := h.find(at, int(n))
	return &cursor{b: b}, err
}

// getHuge returns a huge object. The rest of the heap ID contains its location or its key in the
// B-tree. The error wraps [ErrFormat] if there is no such object.
func (h *heap) getHuge(id *cursor) (*cursor, error) {
	var at block
	if h.placed {
		at = block{id.readUint(8), id.readUint(8)}
	} else {
		if err := h.readPlaces(); err != nil {
			return nil, err
		}
		at = h.places[id.readUint(8)]
	}
	if id.short || at.size == 0 || at.size > maxHeader {
		return nil, malformed("%d bytes at %d for a huge object in a heap", at.size, at.address)
	}
	b, err := h.readAt(at.address, int(at.size))
	return &cursor{b: b}, err
}

// readPlaces reads the B-tree of huge objects into h.places, on first use.
func (h *heap) readPlaces() error {
	if h.places != nil {
		return nil
	}
	index, err := h.openBTree(h.huge)
	if err != nil {
		return err
	}
	if index.kind != recordHuge {
		return malformed("got a tree of kind %d, want %d", index.kind, recordHuge)
	}
	h.places = map[uint64]block{}
	return index.each(func(c *cursor) error {
		at := block{c.readUint(8), c.readUint(8)}
		h.places[c.readUint(8)] = at
		return nil
	})
}

// find reads n bytes at an offset of the heap's address space. It descends from the root to the
// direct block that contains them. The error wraps [ErrFormat] if there is none.
func (h *heap) find(at uint64, n int) ([]byte, error) {
	block, rows := h.root, h.rows
	for range maxDepth {
		if rows == 0 {
			return h.readDirect(block, h.start, at, n)
		}
		row, first, size := h.blockRow(at)
		if row >= rows {
			break
		}
		column := (at - first) / size
		head := uint64(4 + 1 + 8 + h.offset)
		if _, err := h.readSigned("FHIB", block, 4); err != nil {
			return nil, err
		}
		b, err := h.readAt(block+head+8*(uint64(row)*h.width+column), 8)
		if err != nil {
			return nil, err
		}
		block = (&cursor{b: b}).readUint(8)
		at -= first + column*size
		if size <= h.direct {
			return h.readDirect(block, size, at, n)
		}
		if rows = bits.Len64(size) - bits.Len64(h.start*h.width) + 1; rows < 1 {
			break
		}
	}
	return nil, malformed("a reference to a missing object in a heap")
}

// blockRow returns the row of the block table that contains the offset at, the offset of the
// first block of that row, and the block size of the row in bytes.
func (h *heap) blockRow(at uint64) (row int, first, size uint64) {
	if row = bits.Len64(at / (h.start * h.width)); row == 0 {
		return 0, 0, h.start
	}
	size = h.start << (row - 1)
	return row, size * h.width, size
}

// readDirect reads n bytes at the offset at within the direct block of size bytes at address
// block. The offset includes the block header.
func (h *heap) readDirect(block, size, at uint64, n int) ([]byte, error) {
	if _, err := h.readSigned("FHDB", block, 4); err != nil {
		return nil, err
	}
	if at > size || uint64(n) > size-at {
		return nil, malformed("%d bytes at %d of a block of %d in a heap", n, at, size)
	}
	return h.source.readAt(block+at, n)
}
