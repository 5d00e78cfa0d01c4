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

// index describes the chunk index of a data set.
type index struct {
	kind    int
	address uint64
	bare    bool   // chunks that extend past the edge are not filtered
	only    stored // for indexSingle: the size and the filters of the chunk
}

// parseIndex decodes the chunk index of a layout message of version 4 or 5, as written with
// libver="latest".
func (d *Dataset) parseIndex(c *cursor) error {
	flags, rank := c.int(1), c.int(1)
	d.parseChunk(c, rank, c.int(1))
	d.index = index{kind: c.int(1), bare: flags&1 != 0}
	switch d.index.kind { // the index repeats the following fields
	case indexSingle:
		if flags&2 != 0 {
			d.index.only = stored{size: c.int(8), skipped: uint32(c.uint(4))}
		}
	case indexImplicit:
	case indexFixed:
		c.take(1)
	case indexExtensible:
		c.take(5)
	case indexNewTree:
		c.take(6)
	default:
		return unsupported("chunks in an index of kind %d", d.index.kind)
	}
	d.index.address = c.uint(8)
	return nil
}

// readIndex reads the chunk index into d.chunks.
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
		d.put(make([]int, len(d.shape)), only)
		return nil
	case indexImplicit:
		return d.implicit()
	case indexFixed:
		return d.fixedArray()
	case indexExtensible:
		return d.extensibleArray()
	case indexNewTree:
		return d.newTree()
	}
	t := tree{source: d.tree.source}
	return t.eachLeaf(d.index.address, 1, -1, 8+8*(len(d.shape)+1), d.enter)
}

// put records the chunk at the given grid coordinates. Chunks outside of the current shape are
// ignored, because a data set may have been shrunk.
func (d *Dataset) put(at []int, s stored) {
	all, whole := grid(d.shape, d.chunk), true
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

// enter records a chunk of a B-tree of version 1.
func (d *Dataset) enter(key *cursor, address uint64) error {
	s := stored{address: address, size: key.int(4), skipped: uint32(key.uint(4))}
	at := make([]int, len(d.shape))
	for i := range at {
		offset := key.int(8)
		if offset < 0 || offset%d.chunk[i] != 0 || offset >= d.shape[i] {
			return malformed("a chunk at %d of dimension %d of %v", offset, i, d.shape)
		}
		at[i] = offset / d.chunk[i]
	}
	d.put(at, s)
	return nil
}

// chunkSize returns the size in bytes of an uncompressed chunk.
func (d *Dataset) chunkSize() int {
	size, _ := d.kind.sizeOf(d.chunk...)
	return size
}

// place returns the grid coordinates of the n-th chunk of an index. The index covers the maximum
// shape; an unlimited dimension varies slowest.
func (d *Dataset) place(n int) []int {
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

// implicit records the chunks of an implicit index: all of them are allocated, contiguously and
// without filters.
func (d *Dataset) implicit() error {
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
		d.put(d.place(i), stored{address: d.index.address + uint64(i*size), size: size})
	}
	return nil
}

// newTree reads a chunk index that is a B-tree of version 2.
func (d *Dataset) newTree() error {
	t, err := d.tree.openBTree(d.index.address)
	if err != nil {
		return err
	}
	width := t.record - 8*len(d.shape)
	if t.kind != recordChunk && t.kind != recordFiltered || !entryFits(width, t.kind == recordFiltered) {
		return malformed("chunks in a tree of kind %d with records of %d bytes", t.kind, t.record)
	}
	return t.each(func(c *cursor) error {
		s := d.entry(&cursor{b: c.take(width)}, t.kind == recordFiltered)
		at := make([]int, len(d.shape))
		for i := range at {
			at[i] = c.int(8)
		}
		d.put(at, s)
		return nil
	})
}

// entryFits reports whether the size of an index entry is valid. An entry is an address; with
// filters, the chunk size and the filter mask follow.
func entryFits(size int, filtered bool) bool {
	if filtered {
		return size > 12 && size <= 20
	}
	return size == 8
}

// entry decodes an index entry.
func (d *Dataset) entry(c *cursor, filtered bool) stored {
	s := stored{address: c.uint(8), size: d.chunkSize()}
	if filtered {
		s.size = c.int(len(c.b) - 4)
		s.skipped = uint32(c.uint(4))
	}
	return s
}
