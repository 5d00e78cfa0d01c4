package hdf5

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
)

var le = binary.LittleEndian

// A headerWriter writes an object's header, of version 2.
type headerWriter struct{ b []byte }

// add adds a message.
func (h *headerWriter) add(kind int, body []byte) {
	h.b = append(h.b, byte(kind))
	h.b = le.AppendUint16(h.b, uint16(len(body)))
	h.b = append(append(h.b, 0), body...)
}

// finish returns the header.
func (h *headerWriter) finish() []byte {
	const sizeOfFourBytes = 2
	b := append([]byte("OHDR"), 2, sizeOfFourBytes)
	b = le.AppendUint32(b, uint32(len(h.b)))
	b = append(b, h.b...)
	return le.AppendUint32(b, lookup3(b))
}

// linkInfo says that links are in the header.
func linkInfo() []byte {
	b := le.AppendUint64([]byte{0, 0}, undefined)
	return le.AppendUint64(b, undefined)
}

// groupInfo says that links stay in the header, should others add to them.
func groupInfo() []byte {
	const hasLimits, least = 1, 6
	b := le.AppendUint16([]byte{0, hasLimits}, math.MaxUint16)
	return le.AppendUint16(b, least)
}

// link is a hard link with a name in UTF-8.
func link(name string, address uint64) []byte {
	const hasCharset, lengthOfTwoBytes = 16, 1
	b := le.AppendUint16([]byte{1, hasCharset | lengthOfTwoBytes, 1}, uint16(len(name)))
	return le.AppendUint64(append(b, name...), address)
}

// finish writes the tree of chunks and the header, and returns the header's address.
func (d *Output) finish(w *Writer, name string) uint64 {
	var h headerWriter
	h.add(msgDataspace, appendDataspace(nil, d.shape, d.limit))
	if d.kind.text.is {
		h.add(msgDatatype, textType())
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
		h.add(msgLayout, d.layout(d.chunkTree()))
	}
	if len(d.filters) > 0 {
		list := []byte{2, byte(len(d.filters))}
		for _, f := range d.filters {
			list = le.AppendUint16(list, uint16(f.id))
			if f.id >= firstNamed {
				list = le.AppendUint16(list, 0) // no name
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
	return d.w.append(h.finish())
}

// layout says that the chunks are in a tree.
func (d *Output) layout(tree uint64) []byte {
	b := le.AppendUint64([]byte{3, layoutChunked, byte(len(d.shape) + 1)}, tree)
	for _, n := range append(slices.Clone(d.chunk), d.kind.size) {
		b = le.AppendUint32(b, uint32(n))
	}
	return b
}

// appendDataspace writes a shape, and how large it may become where that is another one.
func appendDataspace(b []byte, shape, limit []int) []byte {
	const array = 1 // and a scalar is 0
	grows := byte(0)
	if limit != nil && !slices.Equal(shape, limit) {
		grows = 1
	}
	b = append(b, 2, byte(len(shape)), grows, byte(min(len(shape), array)))
	for _, n := range shape {
		b = le.AppendUint64(b, uint64(n))
	}
	for i := 0; grows != 0 && i < len(limit); i++ {
		b = le.AppendUint64(b, uint64(limit[i])) // of which -1 is without a limit
	}
	return b
}

// fanout is how many children a node of a tree of chunks has room for, where a file does not say
// otherwise.
const fanout = 64

// A child of a node: its address, and the key before it.
type child struct {
	key     []byte
	address uint64
}

// chunkTree writes a B-tree of version 1 and returns its root.
func (d *Output) chunkTree() uint64 {
	if len(d.chunks) == 0 {
		return undefined
	}
	all := grid(d.shape, d.chunk)
	var level []child
	for _, index := range slices.Sorted(maps.Keys(d.chunks)) {
		c := d.chunks[index]
		level = append(level, child{d.key(all.place(index), c, 0), c.address})
	}
	end := d.key(all.place(all.last()), stored{}, 1)
	for height := 0; ; height++ {
		if level = d.w.treeNodes(1, level, end, height, fanout); len(level) == 1 {
			return level[0].address
		}
	}
}

// last is the index of the last chunk.
func (c counts) last() int {
	n := 1
	for _, k := range c {
		n *= k
	}
	return n - 1
}

// key is that of a chunk at a place of the grid, or of the one that is after it by so many in each
// dimension.
func (d *Output) key(at []int, c stored, after int) []byte {
	b := le.AppendUint32(nil, uint32(c.size))
	b = le.AppendUint32(b, c.skipped)
	for i, n := range at {
		b = le.AppendUint64(b, uint64((n+after)*d.chunk[i]))
	}
	return le.AppendUint64(b, uint64(after*d.kind.size))
}

// treeNodes writes the nodes of one height of a B-tree of version 1 over children, before a last
// key, and returns them as children. kind is 0 for symbols and 1 for chunks; a node has room for
// fanout children.
func (w *sink) treeNodes(kind int, children []child, end []byte, height, fanout int) (parents []child) {
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
