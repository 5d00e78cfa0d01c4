package hdf5

import "math/bits"

// Chunk index types. A layout message of version 3 always uses a B-tree of version 1; later
// versions use one of the other types.
const (
	indexTree       = 0
	indexSingle     = 1
	indexImplicit   = 2
	indexFixed      = 3
	indexExtensible = 4
	indexNewTree    = 5
)

// index describes the chunk index of a data set: its type, and its address, which is undefined
// if there are no chunks.
type index struct {
	kind    int
	address uint64
	bare    bool   // chunks that extend past the edge are not filtered
	only    stored // for indexSingle: the size and the filters of the chunk
}

// parseIndex decodes the chunk shape and the chunk index of a layout message of version 4 or 5,
// as written with libver="latest", into d.chunk and d.index. The error wraps [ErrUnsupported]
// for an unknown index; the caller must check c.short.
func (d *Dataset) parseIndex(c *cursor) error {
	flags, rank := c.readInt(1), c.readInt(1)
	d.parseChunk(c, rank, c.readInt(1))
	d.index = index{kind: c.readInt(1), bare: flags&1 != 0}
	switch d.index.kind { // the index repeats the following fields
	case indexSingle:
		if flags&2 != 0 {
			d.index.only = stored{size: c.readInt(8), skipped: uint32(c.readUint(4))}
		}
	case indexImplicit:
	case indexFixed:
		c.takeBytes(1)
	case indexExtensible:
		c.takeBytes(5)
	case indexNewTree:
		c.takeBytes(6)
	default:
		return unsupported("chunks in an index of kind %d", d.index.kind)
	}
	d.index.address = c.readUint(8)
	return nil
}

// readIndex reads the chunk index into d.chunks. The error wraps [ErrFormat].
func (d *Dataset) readIndex() error {
	d.chunks = map[int]stored{}
	if d.index.address == undefined {
		return nil
	}
	switch d.index.kind {
	case indexSingle:
		only := d.index.only
		if only.address = d.index.address; only.size == 0 {
			only.size = d.chunkSize()
		}
		d.recordChunk(make([]int, len(d.shape)), only)
		return nil
	case indexImplicit:
		return d.recordImplicit()
	case indexFixed:
		return d.readFixedArray()
	case indexExtensible:
		return d.readExtensibleArray()
	case indexNewTree:
		return d.readTreeV2()
	}
	t := tree{source: d.tree.source}
	return t.eachLeaf(d.index.address, 1, -1, 8+8*(len(d.shape)+1), d.recordTreeChunk)
}

// recordChunk records in d.chunks the chunk s at the given grid coordinates. Chunks outside of
// the current shape are ignored, because a data set may have been shrunk.
func (d *Dataset) recordChunk(at []int, s stored) {
	all, whole := gridCounts(d.shape, d.chunk), true
	for i := range at {
		if at[i] < 0 || at[i] >= all[i] {
			return
		}
		whole = whole && (at[i]+1)*d.chunk[i] <= d.shape[i]
	}
	if d.index.bare && !whole {
		s.skipped = ^uint32(0)
	}
	d.chunks[all.index(at)] = s
}

// recordTreeChunk records a chunk of a B-tree of version 1. The error wraps [ErrFormat] if key
// is no position of a chunk.
func (d *Dataset) recordTreeChunk(key *cursor, address uint64) error {
	s := stored{address: address, size: key.readInt(4), skipped: uint32(key.readUint(4))}
	at := make([]int, len(d.shape))
	for i := range at {
		offset := key.readInt(8)
		if offset < 0 || offset%d.chunk[i] != 0 || offset >= d.shape[i] {
			return malformed("a chunk at %d of dimension %d of %v", offset, i, d.shape)
		}
		at[i] = offset / d.chunk[i]
	}
	d.recordChunk(at, s)
	return nil
}

// chunkSize returns the size in bytes of an uncompressed chunk.
func (d *Dataset) chunkSize() int {
	size, _ := d.kind.sizeOf(d.chunk...)
	return size
}

// chunkCoordinates returns the grid coordinates of the n-th chunk of an index. The index covers
// the maximum shape; an unlimited dimension varies slowest. The first coordinate is -1 if n is
// past the end.
func (d *Dataset) chunkCoordinates(n int) []int {
	at, endless := make([]int, len(d.limit)), -1
	for i := len(at) - 1; i >= 0; i-- {
		if d.limit[i] < 0 {
			endless = i
			continue
		}
		k := max(1, (d.limit[i]-1)/d.chunk[i]+1)
		at[i], n = n%k, n/k
	}
	switch {
	case endless >= 0:
		at[endless] = n
	case n > 0: // past the end
		at[0] = -1
	}
	return at
}

// recordImplicit records the chunks of an implicit index: all of them are allocated,
// contiguously and without filters. The error wraps [ErrFormat] if they exceed the file.
func (d *Dataset) recordImplicit() error {
	size, n := d.chunkSize(), 1
	for i, most := range d.limit {
		k := (max(most, 1)-1)/d.chunk[i] + 1
		hi, lo := bits.Mul64(uint64(n), uint64(k))
		if hi != 0 || lo > uint64(d.tree.size) {
			return malformed("more chunks than bytes")
		}
		n = int(lo)
	}
	for i := range n {
		d.recordChunk(d.chunkCoordinates(i), stored{address: d.index.address + uint64(i*size), size: size})
	}
	return nil
}

// readTreeV2 reads a chunk index that is a B-tree of version 2 into d.chunks. The error wraps
// [ErrFormat].
func (d *Dataset) readTreeV2() error {
	t, err := d.tree.openBTree(d.index.address)
	if err != nil {
		return err
	}
	width := t.record - 8*len(d.shape)
	if t.kind != recordChunk && t.kind != recordFiltered || !isEntrySize(width, t.kind == recordFiltered) {
		return malformed("chunks in a tree of kind %d with records of %d bytes", t.kind, t.record)
	}
	return t.each(func(c *cursor) error {
		s := d.decodeEntry(&cursor{b: c.takeBytes(width)}, t.kind == recordFiltered)
		at := make([]int, len(d.shape))
		for i := range at {
			at[i] = c.readInt(8)
		}
		d.recordChunk(at, s)
		return nil
	})
}

// isEntrySize reports whether size, in bytes, is valid for an index entry. An entry is an
// address; with filters, the chunk size and the filter mask follow.
func isEntrySize(size int, filtered bool) bool {
	if filtered {
		return size > 12 && size <= 20
	}
	return size == 8
}

// decodeEntry decodes an index entry, which must fill c. filtered means that the chunk size and
// the filter mask follow the address.
func (d *Dataset) decodeEntry(c *cursor, filtered bool) stored {
	s := stored{address: c.readUint(8), size: d.chunkSize()}
	if filtered {
		s.size = c.readInt(len(c.b) - 4)
		s.skipped = uint32(c.readUint(4))
	}
	return s
}
