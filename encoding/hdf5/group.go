package hdf5

import "errors"

// tree lists the groups and data sets of a file. [tree.walk] fills it.
type tree struct {
	source
	inside   map[uint64]bool   // addresses of the groups on the current path
	datasets map[string]uint64 // header addresses, by path
	groups   map[string]uint64
	visits   int
}

// Limits of the traversal, which bound malformed files.
const (
	maxDepth  = 64
	maxVisits = 1 << 20
)

// walk adds the object with the given path and header address to the lists. If it is a group,
// walk visits its members. depth is the number of groups above it. A malformed group or a depth
// of more than 64 is an error that wraps [ErrFormat].
func (t *tree) walk(name string, address uint64, depth int) error {
	if t.inside[address] {
		return nil // a cycle of hard links
	}
	if t.visits++; t.visits > maxVisits || depth > maxDepth {
		return malformed("groups nest deeper than %d, or have too many links", maxDepth)
	}
	all, err := t.readMessages(address)
	if errors.Is(err, ErrUnsupported) && name != "" {
		t.datasets[name] = address // [File.Dataset] will return the error
		return nil
	}
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.kind == msgLayout {
			t.datasets[name] = address
			return nil
		}
	}
	t.inside[address], t.groups[name] = true, address
	defer delete(t.inside, address)
	for _, m := range all {
		switch c := (&cursor{b: m.body}); m.kind {
		case msgSymbolTable:
			tree, heap := c.readUint(8), c.readUint(8)
			err = t.visitSymbols(name, tree, heap, depth)
		case msgLink:
			err = t.visitLink(name, c, depth)
		case msgLinkInfo:
			err = t.visitDense(name, c, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// joinPath returns the path of the member name of a group. group is "" for the root group.
func joinPath(group, name string) string {
	if group == "" {
		return name
	}
	return group + "/" + name
}

// visitLink decodes a link message of a group and visits the target of a hard link. Soft and
// external links are skipped. depth is the depth of the group. The error wraps [ErrFormat].
func (t *tree) visitLink(group string, c *cursor, depth int) error {
	version, flags, kind := c.readInt(1), c.readInt(1), 0
	if flags&8 != 0 {
		kind = c.readInt(1)
	}
	if flags&4 != 0 {
		c.takeBytes(8)
	}
	if flags&16 != 0 {
		c.takeBytes(1)
	}
	name := string(c.takeBytes(c.readInt(1 << (flags & 3))))
	if version != 1 || c.short || name == "" {
		return malformed("a link in group %q", group)
	}
	if kind != 0 { // soft, external or user-defined
		return nil
	}
	address := c.readUint(8)
	if c.short {
		return malformed("the link %q in group %q", name, group)
	}
	return t.walk(joinPath(group, name), address, depth+1)
}

// visitDense visits the members of a group that stores its links in a fractal heap. c contains
// the link info message. If the links are stored elsewhere, visitDense does nothing.
func (t *tree) visitDense(group string, c *cursor, depth int) error {
	c.takeBytes(1)
	if c.readInt(1)&1 != 0 {
		c.takeBytes(8)
	}
	return t.eachHeapObject(c.readUint(8), c.readUint(8), recordLink, 4,
		func(c *cursor) error { return t.visitLink(group, c, depth) })
}

// eachHeapObject calls do for each heap object that the B-tree at address tree indexes, and does
// nothing if either address is undefined. kind is the expected record type, and before is the
// number of bytes that precede the heap ID in a record. It stops at the first error and returns
// it.
func (s source) eachHeapObject(heap, tree uint64, kind, before int, do func(c *cursor) error) error {
	if heap == undefined || tree == undefined {
		return nil
	}
	h, err := s.openHeap(heap)
	if err != nil {
		return err
	}
	index, err := s.openBTree(tree)
	if err != nil {
		return err
	}
	if index.kind != kind {
		return malformed("got a tree of kind %d, want %d", index.kind, kind)
	}
	return index.each(func(id *cursor) error {
		id.takeBytes(before)
		c, err := h.get(id)
		if err != nil {
			return err
		}
		return do(c)
	})
}

// visitSymbols visits the members of a group that stores its links in a symbol table, the format
// before HDF5 1.8. address is the B-tree's, heap the local heap's, and depth the depth of the
// group. Soft links are skipped.
func (t *tree) visitSymbols(group string, address, heap uint64, depth int) error {
	return t.eachSymbol(address, heap, func(s symbol) error {
		if s.name == "" {
			return malformed("a name in group %q", group)
		}
		if s.kind == symbolPath {
			return nil
		}
		return t.walk(joinPath(group, s.name), s.header, depth+1)
	})
}

// symbol is an entry of a symbol table: a link of a group in the format before HDF5 1.8.
type symbol struct {
	name   string
	header uint64 // address of the object header
	kind   uint64 // cache type of the scratch-pad space
	known  []byte // the scratch-pad space
	at     uint64 // address of the scratch-pad space
	path   string // target of a soft link
}

// Cache types of symbol table entries.
const (
	symbolGroup = 1 // caches the addresses of the group's symbol table
	symbolPath  = 2 // a soft link: the offset of its target in the local heap
)

// symbolSize is the size in bytes of a symbol table entry.
const symbolSize = 8 + 8 + 4 + 4 + 16

// eachSymbol calls do for the entries of a symbol table in the order of their names. address is
// the B-tree's and heap the local heap's. A name is empty if its offset is outside of the local
// heap. eachSymbol stops at the first error and returns it.
func (t *tree) eachSymbol(address, heap uint64, do func(s symbol) error) error {
	c, err := t.readSigned("HEAP", heap, 32)
	if err != nil {
		return err
	}
	c.takeBytes(4)
	size := c.readUint(8)
	c.takeBytes(8)
	names, err := t.readAt(c.readUint(8), int(min(size, maxHeader)))
	if err != nil {
		return err
	}
	return t.eachLeaf(address, 0, -1, 8, func(_ *cursor, node uint64) error {
		return t.symbolNode(node, names, do)
	})
}

// symbolNode calls do for the entries of the symbol table node at address. names is the content
// of the local heap.
func (t *tree) symbolNode(address uint64, names []byte, do func(s symbol) error) error {
	c, err := t.readSigned("SNOD", address, 8)
	if err != nil {
		return err
	}
	c.takeBytes(2)
	n := c.readInt(2)
	b, err := t.readAt(address+8, n*symbolSize)
	if err != nil {
		return err
	}
	text := func(at uint64) string { return (&cursor{b: names[min(at, uint64(len(names))):]}).readText(1) }
	for c = (&cursor{b: b}); len(c.b) > 0; {
		at := address + 8 + uint64(len(b)-len(c.b))
		s := symbol{at: at + symbolSize - 16, name: text(c.readUint(8)), header: c.readUint(8), kind: c.readUint(4)}
		c.takeBytes(4)
		if s.known = c.takeBytes(16); s.kind == symbolPath {
			s.path = text(uint64(le.Uint32(s.known)))
		}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// eachLeaf calls do with the key and the address of each child of the leaf nodes of a B-tree of
// version 1. kind is the expected node type: 0 for symbol nodes, 1 for chunks. level is the
// level of the parent node, or -1 for the root; each node must be one level below its parent.
// keySize is the size of a key in bytes. The error is the first one of do, or wraps [ErrFormat].
func (t *tree) eachLeaf(address uint64, kind, level, keySize int, do func(key *cursor, child uint64) error) error {
	if t.visits++; t.visits > maxVisits {
		return malformed("more than %d nodes in a tree", maxVisits)
	}
	c, err := t.readSigned("TREE", address, 24)
	if err != nil {
		return err
	}
	at, height, n := c.readInt(1), c.readInt(1), c.readInt(2)
	if at != kind || level >= 0 && height != level-1 || height > maxDepth {
		return malformed("the tree at %d", address)
	}
	b, err := t.readAt(address+24, n*(keySize+8)+keySize)
	if err != nil {
		return err
	}
	c = &cursor{b: b}
	for range n {
		key := &cursor{b: c.takeBytes(keySize)}
		child := c.readUint(8)
		if height == 0 {
			err = do(key, child)
		} else {
			err = t.eachLeaf(child, kind, height, keySize, do)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
