package hdf5

import "slices"

// noFree is the end marker of the free list of a local heap.
const noFree = 1

// writeSymbolTable writes a symbol table: a B-tree of symbol nodes and a local heap with the
// names. There must be at least one entry, and the entries must be sorted by name. s has the
// sizes of the nodes. It returns the body of a symbol table message, which consists of the
// addresses of the B-tree and the heap, and stores an error in w.err.
func (w *sink) writeSymbolTable(all []symbol, s superblock) []byte {
	names := make([]byte, 8) // the empty name is the key of the first node
	enter := func(text string) uint64 {
		at := len(names)
		names = append(names, text...)
		names = append(names, make([]byte, 8-len(text)%8)...)
		return uint64(at)
	}
	var level []child
	var last []byte // key after a node: the heap offset of its last name
	for group := range slices.Chunk(all, s.symbols) {
		before := last
		if before == nil {
			before = make([]byte, 8)
		}
		b := le.AppendUint16([]byte("SNOD\x01\x00"), uint16(len(group)))
		for _, symbol := range group {
			at := enter(symbol.name)
			last = le.AppendUint64(nil, at)
			known := slices.Clone(symbol.known)
			if symbol.kind == symbolPath {
				le.PutUint32(known, uint32(enter(symbol.path)))
			}
			b = le.AppendUint64(le.AppendUint64(b, at), symbol.header)
			b = append(le.AppendUint32(le.AppendUint32(b, uint32(symbol.kind)), 0), known...)
		}
		b = append(b, make([]byte, (s.symbols-len(group))*symbolSize)...)
		level = append(level, child{before, w.append(b)})
	}
	for height := 0; ; height++ {
		if level = w.writeTreeNodes(0, level, last, height, s.children); len(level) == 1 {
			break
		}
	}
	heap := append([]byte("HEAP"), 0, 0, 0, 0)
	heap = le.AppendUint64(le.AppendUint64(heap, uint64(len(names))), noFree)
	heap = le.AppendUint64(heap, w.append(names))
	return le.AppendUint64(le.AppendUint64(nil, level[0].address), w.append(heap))
}
