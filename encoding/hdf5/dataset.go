package hdf5

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Dataset is an array in a file, as returned by [File.Dataset]. Its methods may be called from
// several goroutines. They must not be called after [File.Close].
type Dataset struct {
	tree    *tree
	kind    datatype
	shape   []int
	limit   []int // maximum shape; -1 is unlimited
	filters []filter
	fill    []byte // encoded fill value; nil is zero
	most    int64  // limit of bytes per read; see File.MaxBytes
	store
}

// store locates the elements of a data set in the file. For a chunked data set, chunks has the
// chunks that were written, by linear index.
type store struct {
	kind    int    // layout class
	compact []byte // the elements themselves
	address uint64 // address of the elements
	size    uint64
	chunk   []int // nil unless chunked
	chunks  map[int]stored
	index   index
}

// Layout classes.
const (
	layoutCompact    = 0
	layoutContiguous = 1
	layoutChunked    = 2
)

// stored is the location of a chunk in the file: its address and its size in bytes there.
type stored struct {
	address uint64
	size    int
	skipped uint32 // bit mask of the filters that were not applied
	fixed   bool   // must not be overwritten
}

// DType returns the dtype of the elements.
func (d *Dataset) DType() tensor.DType { return d.kind.dtype }

// Shape returns the size of each dimension. The caller may modify the returned slice.
func (d *Dataset) Shape() []int { return slices.Clone(d.shape) }

// Chunk returns the shape of a chunk, or nil if the data set is not chunked. The caller may modify
// the returned slice.
func (d *Dataset) Chunk() []int { return slices.Clone(d.chunk) }

// decodeMessages decodes the messages of a data set's object header and then validates them. The
// error wraps [ErrFormat] or [ErrUnsupported].
func (d *Dataset) decodeMessages(all []message) (err error) {
	has := 0
	for _, m := range all {
		c := &cursor{b: m.body}
		switch m.kind {
		case msgDataspace, msgDatatype, msgLayout, msgFilters:
			if m.shared {
				return unsupported("a committed datatype or another shared message")
			}
		}
		switch m.kind {
		case msgDataspace:
			d.shape, d.limit, err = parseDataspace(c)
			has |= 1
		case msgDatatype:
			d.kind, err = parseDatatype(c, 0)
			has |= 2
		case msgLayout:
			err = d.parseLayout(c)
			has |= 4
		case msgFilters:
			if d.filters, err = parseFilters(c); err == nil {
				err = checkKnown(d.filters)
			}
		case msgFill:
			d.parseFill(c)
		case msgExternal:
			err = unsupported("elements in external files")
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

// parseDataspace reads the shape and the maximum shape. In limit, -1 means unlimited. Without a
// maximum shape, limit equals shape. The error wraps [ErrFormat] or [ErrUnsupported].
func parseDataspace(c *cursor) (shape, limit []int, err error) {
	version, rank, flags := c.readInt(1), c.readInt(1), c.readInt(1)
	switch {
	case version == 1:
		c.takeBytes(5)
	case version == 2 && c.readInt(1) == 2:
		return nil, nil, unsupported("a data set without a shape")
	case version != 2:
		return nil, nil, malformed("a shape of version %d", version)
	}
	shape = c.readDims(rank)
	limit = shape
	if flags&1 != 0 {
		limit = c.readDims(rank)
	}
	for i, n := range shape {
		if n < 0 || n > 1<<48 || limit[i] > 1<<48 {
			return nil, nil, malformed("a dimension of %d", n)
		}
	}
	if c.short {
		return nil, nil, malformed("a shape is cut short")
	}
	return shape, limit, nil
}

// readDims reads rank sizes of 8 bytes, one per dimension. An unlimited size is read as -1.
func (c *cursor) readDims(rank int) []int {
	dims := make([]int, rank)
	for i := range dims {
		dims[i] = c.readInt(8)
	}
	return dims
}

// parseFill reads the fill value into d.fill, which stays nil if none is defined.
func (d *Dataset) parseFill(c *cursor) {
	defined := true
	switch c.readInt(1) {
	case 1, 2:
		c.takeBytes(2)
		defined = c.readInt(1) != 0
	case 3:
		defined = c.readInt(1)&0x20 != 0
	}
	if defined {
		d.fill = c.takeBytes(c.readInt(4))
	}
}

func (d *Dataset) parseLayout(c *cursor) error {
	version := c.readInt(1)
	if version < 3 || version > 5 {
		return unsupported("version %d of a layout (made before HDF5 1.6?)", version)
	}
	switch d.store.kind = c.readInt(1); d.store.kind {
	case layoutCompact:
		d.compact = c.takeBytes(c.readInt(2))
	case layoutContiguous:
		d.address, d.size = c.readUint(8), c.readUint(8)
	case layoutChunked:
		if version > 3 {
			if err := d.parseIndex(c); err != nil {
				return err
			}
			break
		}
		rank := c.readInt(1)
		d.index.address = c.readUint(8)
		d.parseChunk(c, rank, 4)
	default:
		return unsupported("a virtual data set")
	}
	if c.short {
		return malformed("a layout is cut short")
	}
	return nil
}

// parseChunk reads the shape of a chunk into d.chunk: rank numbers of width bytes each. The last
// one is the element size in bytes, which [Dataset.check] removes.
func (d *Dataset) parseChunk(c *cursor, rank, width int) {
	d.chunk = []int{}
	for range rank {
		d.chunk = append(d.chunk, c.readInt(width))
	}
}

// check validates that the layout, the shape and the datatype are consistent, and reads the
// chunk index. The error wraps [ErrFormat] or [ErrUnsupported].
func (d *Dataset) check() error {
	size, err := d.kind.sizeOf(d.shape...)
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
		if d.address != undefined && (d.size != uint64(size) || d.address > uint64(d.tree.size) ||
			d.size > uint64(d.tree.size)-d.address) {
			return malformed("%d bytes at %d for a shape of %v", d.size, d.address, d.shape)
		}
		return nil
	}
	return d.checkChunks()
}

// maxChunk is the maximum size of a chunk in bytes that HDF5 supports.
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
	if size, err := d.kind.sizeOf(d.chunk...); err != nil || size > maxChunk {
		return malformed("chunks of %v", d.chunk)
	}
	return d.readIndex()
}
