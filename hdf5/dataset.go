package hdf5

import (
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// A Dataset is an array in a file. Its methods may be called concurrently.
type Dataset struct {
	tree    *tree
	kind    datatype
	shape   []int
	filters []filter
	fill    []byte // an element that was never written; nil is zeros
	store
}

// A store is where the elements are.
type store struct {
	kind    int    // of the layout
	compact []byte // the elements themselves
	address uint64 // of the elements, or of the tree of chunks
	size    uint64
	chunk   []int // nil unless chunked
	chunks  map[int]stored
}

// The kinds of layouts.
const (
	layoutCompact    = 0
	layoutContiguous = 1
	layoutChunked    = 2
)

// A stored chunk.
type stored struct {
	address uint64
	size    int
	skipped uint32 // filters
}

// DType returns the type of the elements.
func (d *Dataset) DType() tensor.DType { return d.kind.dtype }

// Shape returns the sizes of the dimensions.
func (d *Dataset) Shape() []int { return slices.Clone(d.shape) }

// Chunk returns the shape of the chunks, nil where the elements are in one piece.
func (d *Dataset) Chunk() []int { return slices.Clone(d.chunk) }

// describe reads the messages of a data set's header.
func (d *Dataset) describe(all []message) (err error) {
	has := 0
	for _, m := range all {
		c := &cursor{b: m.body}
		switch m.kind {
		case msgDataspace, msgDatatype, msgLayout, msgFilters:
			if m.shared {
				return unsupported("a datatype, or another message, that has a name of its own")
			}
		}
		switch m.kind {
		case msgDataspace:
			d.shape, err = parseDataspace(c)
			has |= 1
		case msgDatatype:
			d.kind, err = parseDatatype(c, 0)
			has |= 2
		case msgLayout:
			err = d.parseLayout(c)
			has |= 4
		case msgFilters:
			if d.filters, err = parseFilters(c); err == nil {
				err = known(d.filters)
			}
		case msgFill:
			d.parseFill(c)
		case msgExternal:
			err = unsupported("elements in other files")
		}
		if err != nil {
			return err
		}
	}
	if has != 7 {
		return malformed("its header has no shape, no datatype or no layout")
	}
	return d.check()
}

func parseDataspace(c *cursor) (shape []int, err error) {
	version, rank, flags := c.int(1), c.int(1), c.int(1)
	switch {
	case version == 1:
		c.take(5)
	case version == 2 && c.int(1) == 2:
		return nil, unsupported("a data set without a shape")
	case version != 2:
		return nil, malformed("a shape of version %d", version)
	}
	_ = flags // the most that dimensions may become follows them
	shape = make([]int, rank)
	for i := range shape {
		n := c.uint(8)
		if n > 1<<48 {
			return nil, malformed("a dimension of %d", n)
		}
		shape[i] = int(n)
	}
	if c.short {
		return nil, malformed("a shape is cut short")
	}
	return shape, nil
}

// parseFill keeps the value of what was never written.
func (d *Dataset) parseFill(c *cursor) {
	defined := true
	switch c.int(1) {
	case 1, 2:
		c.take(2)
		defined = c.int(1) != 0
	case 3:
		defined = c.int(1)&0x20 != 0
	}
	if defined {
		d.fill = c.take(c.int(4))
	}
}

func (d *Dataset) parseLayout(c *cursor) error {
	version := c.int(1)
	if version != 3 && version != 4 {
		return unsupported("version %d of a layout (made with libver=\"latest\", or before HDF5 1.6)", version)
	}
	switch d.store.kind = c.int(1); d.store.kind {
	case layoutCompact:
		d.compact = c.take(c.int(2))
	case layoutContiguous:
		d.address, d.size = c.uint(8), c.uint(8)
	case layoutChunked:
		if version == 4 {
			return d.parseNewChunks(c)
		}
		rank := c.int(1)
		d.address = c.uint(8)
		d.parseChunk(c, rank, 4)
	default:
		return unsupported("a virtual data set, whose elements are in others")
	}
	if c.short {
		return malformed("a layout is cut short")
	}
	return nil
}

// parseChunk reads the shape of chunks, the last dimension of which is the element.
func (d *Dataset) parseChunk(c *cursor, rank, width int) {
	d.chunk = []int{}
	for range rank {
		d.chunk = append(d.chunk, c.int(width))
	}
}

// The indexes of chunks of version 4 of the layout.
var chunkIndexes = map[int]string{3: "fixed array", 4: "extensible array", 5: "B-tree of version 2"}

// parseNewChunks reads how libver="latest" stores chunks, as far as they need no index.
func (d *Dataset) parseNewChunks(c *cursor) error {
	flags, rank := c.int(1), c.int(1)
	d.parseChunk(c, rank, c.int(1)&15)
	if rank < 1 || c.short {
		return malformed("a layout is cut short")
	}
	size := 1
	for _, n := range d.chunk {
		if n < 1 || n > 1<<32 || size > 1<<40 {
			return malformed("chunks of %v", d.chunk)
		}
		size *= n
	}
	index := c.int(1)
	if index != 1 {
		name := chunkIndexes[index]
		if name == "" {
			name = fmt.Sprint("index ", index)
		}
		return unsupported("chunks in a %s (made with libver=\"latest\")", name)
	}
	only := stored{size: size}
	if flags&2 != 0 {
		only.size, only.skipped = c.int(8), uint32(c.uint(4))
	}
	only.address = c.uint(8)
	d.chunks = map[int]stored{}
	if only.address != undefined {
		d.chunks[0] = only
	}
	return nil
}

// check compares what the header says of one thing in several places, and reads the tree of chunks.
func (d *Dataset) check() error {
	size, err := d.kind.dtype.SizeOf(d.shape...)
	if err != nil {
		return malformed("%v", err)
	}
	if len(d.fill) != d.kind.size {
		d.fill = nil
	}
	switch d.store.kind {
	case layoutCompact:
		if len(d.compact) != size {
			return malformed("%d bytes for a shape of %v", len(d.compact), d.shape)
		}
		return nil
	case layoutContiguous:
		if d.address != undefined && (d.size != uint64(size) || d.address > uint64(d.tree.size) || d.size > uint64(d.tree.size)-d.address) {
			return malformed("%d bytes at %d for a shape of %v", d.size, d.address, d.shape)
		}
		return nil
	}
	return d.checkChunks()
}

// maxChunk is the largest chunk that HDF5 has.
const maxChunk = 1<<32 - 1

func (d *Dataset) checkChunks() error {
	rank := len(d.shape)
	if rank == 0 || len(d.chunk) != rank+1 || d.chunk[rank] != d.kind.size {
		return malformed("chunks of %v for a shape of %v", d.chunk, d.shape)
	}
	d.chunk = d.chunk[:rank]
	for i, n := range d.chunk {
		if n < 1 || n > 1<<32 {
			return malformed("chunks of %v", d.chunk)
		}
		if d.shape[i] == 0 {
			return nil
		}
	}
	if size, err := d.kind.dtype.SizeOf(d.chunk...); err != nil || size > maxChunk {
		return malformed("chunks of %v", d.chunk)
	}
	if d.chunks != nil {
		return nil
	}
	d.chunks = map[int]stored{}
	if d.address == undefined {
		return nil
	}
	t := tree{source: d.tree.source}
	return t.eachLeaf(d.address, 1, -1, 8+8*(rank+1), d.enter)
}

// enter notes a chunk of the tree.
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
	d.chunks[grid(d.shape, d.chunk).index(at)] = s
	return nil
}
