package hdf5

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

var le = binary.LittleEndian

// headerWriter builds an object header of version 2. The zero value is an empty header.
type headerWriter struct{ b []byte }

// add appends a message. body must have at most 65,535 bytes.
func (h *headerWriter) add(kind int, body []byte) {
	h.b = append(h.b, byte(kind))
	h.b = le.AppendUint16(h.b, uint16(len(body)))
	h.b = append(append(h.b, 0), body...)
}

// encodeHeader returns the encoded header with its prefix and its checksum.
func (h *headerWriter) encodeHeader() []byte {
	const sizeOfFourBytes = 2
	b := append([]byte("OHDR"), 2, sizeOfFourBytes)
	b = le.AppendUint32(b, uint32(len(h.b)))
	b = append(b, h.b...)
	return le.AppendUint32(b, lookup3(b))
}

// linkInfoMessage returns the link info message of a group that stores its links in its header.
func linkInfoMessage() []byte {
	b := le.AppendUint64([]byte{0, 0}, undefined)
	return le.AppendUint64(b, undefined)
}

// groupInfoMessage returns a group info message with the maximum number of compact links. It tells
// libhdf5 to keep the links in the header when it adds more.
func groupInfoMessage() []byte {
	const hasLimits, least = 1, 6
	b := le.AppendUint16([]byte{0, hasLimits}, math.MaxUint16)
	return le.AppendUint16(b, least)
}

// linkMessage returns the body of a link message: a hard link with a UTF-8 name to the object
// with the given header address. name must have at most 65,535 bytes.
func linkMessage(name string, address uint64) []byte {
	const hasCharset, lengthOfTwoBytes = 16, 1
	b := le.AppendUint16([]byte{1, hasCharset | lengthOfTwoBytes, 1}, uint16(len(name)))
	return le.AppendUint64(append(b, name...), address)
}

// writeDataset writes the chunk B-tree and the object header of the data set, with the
// attributes of name. It returns the address of the header, and stores an error in d.w.err.
func (d *Output) writeDataset(w *Writer, name string) uint64 {
	var h headerWriter
	h.add(msgDataspace, appendDataspace(nil, d.shape, d.limit))
	if d.kind.text.is {
		h.add(msgDatatype, textDatatype())
	} else {
		h.add(msgDatatype, appendDatatype(nil, d.kind.dtype))
	}
	if d.store.kind == layoutContiguous {
		const late, whenSet = 2, 2 << 2
		h.add(msgFill, []byte{3, late | whenSet})
		h.add(msgLayout, le.AppendUint64(le.AppendUint64([]byte{3, layoutContiguous}, d.address), d.size))
	} else {
		const incremental, whenSet = 3, 2 << 2
		h.add(msgFill, []byte{3, incremental | whenSet})
		h.add(msgLayout, d.layoutMessage(d.writeChunkTree()))
	}
	if len(d.filters) > 0 {
		list := []byte{2, byte(len(d.filters))}
		for _, f := range d.filters {
			list = le.AppendUint16(list, uint16(f.id))
			if f.id >= firstNamed {
				list = le.AppendUint16(list, 0) // length of the name
			}
			list = le.AppendUint16(list, f.flags)
			list = le.AppendUint16(list, uint16(len(f.values)))
			for _, v := range f.values {
				list = le.AppendUint32(list, v)
			}
		}
		h.add(msgFilters, list)
	}
	w.addAttrs(&h, name)
	return d.w.append(h.encodeHeader())
}

// layoutMessage returns the body of a layout message of version 3, which indexes the chunks with
// the B-tree at the address tree.
func (d *Output) layoutMessage(tree uint64) []byte {
	b := le.AppendUint64([]byte{3, layoutChunked, byte(len(d.shape) + 1)}, tree)
	for _, n := range append(slices.Clone(d.chunk), d.kind.size) {
		b = le.AppendUint32(b, uint32(n))
	}
	return b
}

// appendDataspace appends the body of a dataspace message. The maximum shape limit is included
// only if it is not nil and differs from shape; -1 in it means unlimited.
func appendDataspace(b []byte, shape, limit []int) []byte {
	const array = 1 // 0 for a scalar
	grows := byte(0)
	if limit != nil && !slices.Equal(shape, limit) {
		grows = 1
	}
	b = append(b, 2, byte(len(shape)), grows, byte(min(len(shape), array)))
	for _, n := range shape {
		b = le.AppendUint64(b, uint64(n))
	}
	for i := 0; grows != 0 && i < len(limit); i++ {
		b = le.AppendUint64(b, uint64(limit[i])) // -1 is HDF5's encoding of unlimited
	}
	return b
}

// fanout is the number of children of a chunk B-tree node in files that do not specify it. It is 2K
// with the default K of 32.
const fanout = 64

// child is a child pointer of a B-tree node, with the key that precedes it.
type child struct {
	key     []byte
	address uint64
}

// writeChunkTree writes the chunk index as a B-tree of version 1 and returns the address of its
// root, or undefined if there are no chunks. It stores an error in d.w.err.
func (d *Output) writeChunkTree() uint64 {
	if len(d.chunks) == 0 {
		return undefined
	}
	all := gridCounts(d.shape, d.chunk)
	var level []child
	for _, index := range slices.Sorted(maps.Keys(d.chunks)) {
		c := d.chunks[index]
		level = append(level, child{d.chunkKey(all.coordinatesOf(index), c, 0), c.address})
	}
	end := d.chunkKey(all.coordinatesOf(all.lastIndex()), stored{}, 1)
	for height := 0; ; height++ {
		if level = d.w.writeTreeNodes(1, level, end, height, fanout); len(level) == 1 {
			return level[0].address
		}
	}
}

// lastIndex returns the linear index of the last chunk.
func (c counts) lastIndex() int {
	n := 1
	for _, k := range c {
		n *= k
	}
	return n - 1
}

// chunkKey returns the B-tree key of the chunk c at grid coordinates at. after is added to each
// coordinate; it is 0, or 1 for the final key, which follows the last chunk.
func (d *Output) chunkKey(at []int, c stored, after int) []byte {
	b := le.AppendUint32(nil, uint32(c.size))
	b = le.AppendUint32(b, c.skipped)
	for i, n := range at {
		b = le.AppendUint64(b, uint64((n+after)*d.chunk[i]))
	}
	return le.AppendUint64(b, uint64(after*d.kind.size))
}

// writeTreeNodes writes all nodes of one height of a B-tree of version 1 and returns them as the
// children of the next height; the tree is complete when there is one. end is the key that
// follows the last child. kind is the node type: 0 for symbol nodes, 1 for chunks. A node has
// space for fanout children. It stores an error in w.err.
func (w *sink) writeTreeNodes(kind int, children []child, end []byte, height, fanout int) (parents []child) {
	size := uint64(24 + fanout*8 + (fanout+1)*len(end))
	first := uint64(w.tree.size)
	for group := range slices.Chunk(children, fanout) {
		number := len(parents)
		left, right, last := undefined, undefined, end
		if number > 0 {
			left = first + uint64(number-1)*size
		}
		if done := (number + 1) * fanout; done < len(children) {
			right, last = first+uint64(number+1)*size, children[done].key
		}
		b := append([]byte("TREE"), byte(kind), byte(height))
		b = le.AppendUint16(b, uint16(len(group)))
		b = le.AppendUint64(b, left)
		b = le.AppendUint64(b, right)
		for _, c := range group {
			b = le.AppendUint64(append(b, c.key...), c.address)
		}
		b = append(b, last...)
		b = append(b, make([]byte, int(size)-len(b))...)
		parents = append(parents, child{group[0].key, w.append(b)})
	}
	return parents
}
