package hdf5

import "math/bits"

// Record types of B-trees of version 2.
const (
	recordHuge      = 1 // indexed by heap ID
	recordLink      = 5 // indexed by the hash of the name
	recordAttribute = 8
	recordChunk     = 10
	recordFiltered  = 11
)

// btree is a reader of a B-tree of version 2. [source.openBTree] makes it. It may be walked
// once, by one goroutine.
type btree struct {
	source
	kind   int
	record int // bytes per record
	node   int // bytes per node
	levels []level
	root   uint64
	first  int // number of records in the root
	left   int // remaining nodes and records that may be visited; it bounds cyclic trees
}

// level holds the limits of the nodes at one depth of a [btree]. They determine the width of the
// fields of a child pointer.
type level struct {
	most    uint64 // maximum number of records in a node
	all     uint64 // maximum number of records in a node and its descendants
	counter int    // width in bytes of a total record count
}

const nodeHead = 4 + 1 + 1 + 4 // signature, version, type, checksum

// openBTree reads the header of the B-tree of version 2 at the given address. It returns an
// error that wraps [ErrFormat] if the header is malformed.
func (s source) openBTree(address uint64) (*btree, error) {
	c, err := s.readSealed("BTHD", address, 38)
	if err != nil {
		return nil, err
	}
	version := c.readInt(1)
	t := &btree{source: s, kind: c.readInt(1), node: c.readInt(4), record: c.readInt(2)}
	depth := c.readInt(2)
	c.takeBytes(2)
	t.root, t.first = c.readUint(8), c.readInt(2)
	if version != 0 || t.record < 1 || t.node < nodeHead+t.record || int64(t.node) > s.size || depth > maxDepth {
		return nil, malformed("a tree of version %d with records of %d bytes in nodes of %d, of depth %d",
			version, t.record, t.node, depth)
	}
	t.left = 2*int(s.size)/t.record + 2
	leaf := uint64((t.node - nodeHead) / t.record)
	t.levels = []level{{leaf, leaf, 0}}
	for i := range depth {
		below := t.levels[i]
		child := 8 + t.countWidth() + below.counter
		most := uint64(max(0, t.node-nodeHead-child) / (t.record + child))
		hi, all := bits.Mul64(most+1, below.all)
		if all += most; hi != 0 || most == 0 || all < most {
			return nil, malformed("a tree of depth %d", depth)
		}
		t.levels = append(t.levels, level{most, all, byteWidth(all)})
	}
	return t, nil
}

// countWidth returns the width in bytes of the record count of a single node.
func (t *btree) countWidth() int { return byteWidth(t.levels[0].most) }

// byteWidth returns the number of bytes needed to encode numbers up to n, at least 1.
func byteWidth(n uint64) int { return max(1, (bits.Len64(n)+7)/8) }

// each calls do for each record in order, with a cursor on its bytes. It stops at the first
// error and returns it. The error wraps [ErrFormat] if a node is malformed.
func (t *btree) each(do func(c *cursor) error) error {
	if t.root == undefined {
		return nil
	}
	return t.walk(t.root, t.first, len(t.levels)-1, do)
}

func (t *btree) walk(address uint64, records, depth int, do func(c *cursor) error) error {
	if t.left -= 1 + records; t.left < 0 || uint64(records) > t.levels[depth].most {
		return malformed("the tree at %d has too many records", address)
	}
	signature, size := "BTLF", records*t.record
	if depth > 0 {
		signature = "BTIN"
		size += (records + 1) * (8 + t.countWidth() + t.levels[depth-1].counter)
	}
	c, err := t.readSealed(signature, address, size+nodeHead)
	if err != nil {
		return err
	}
	if version, kind := c.readInt(1), c.readInt(1); version != 0 || kind != t.kind {
		return malformed("a node of kind %d in a tree of kind %d", kind, t.kind)
	}
	own := &cursor{b: c.takeBytes(records * t.record)}
	for i := range records + 1 {
		if depth > 0 {
			child, n := c.readUint(8), c.readInt(t.countWidth())
			c.takeBytes(t.levels[depth-1].counter)
			if err := t.walk(child, n, depth-1, do); err != nil {
				return err
			}
		}
		if i < records {
			if err := do(&cursor{b: own.takeBytes(t.record)}); err != nil {
				return err
			}
		}
	}
	return nil
}
