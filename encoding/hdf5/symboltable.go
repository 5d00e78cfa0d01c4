package hdf5

import "slices"

// noFree ends the list of what is free in a heap of names.
const noFree = 1

// symbolTable writes symbols, sorted by their names, as a tree of nodes and a heap with the names,
// and returns the addresses of both as a header has them.
func (w *sink) symbolTable(all []symbol, s superblock) []byte {
	names := make([]byte, 8) // the empty name is that before the first node
	enter := func(text string) uint64 {
		at := len(names)
		names = append(names, text...)
		names = append(names, make([]byte, 8-len(text)%8)...)
		return uint64(at)
	}
	var level []child
	var last []byte // the key behind a node: the place of its last name
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
		if level = w.treeNodes(0, level, last, height, s.children); len(level) == 1 {
			break
		}
	}
	heap := append([]byte("HEAP"), 0, 0, 0, 0)
	heap = le.AppendUint64(le.AppendUint64(heap, uint64(len(names))), noFree)
	heap = le.AppendUint64(heap, w.append(names))
	return le.AppendUint64(le.AppendUint64(nil, level[0].address), w.append(heap))
}
