package hdf5

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

// linking holds the links of an existing group to which members can be added. [File.linking]
// reads it.
type linking struct {
	has   map[string]bool // names of the existing links
	all   []message       // messages of the object header
	table *message        // symbol table message of the old group format; nil for the new one
}

// linking reads the links of the group with the given header address. The error wraps
// [ErrUnsupported] if members cannot be added to this kind of group; see [Append].
func (f *File) linking(address uint64) (*linking, error) {
	all, err := f.readMessages(address)
	if err != nil {
		return nil, err
	}
	start, err := f.readAt(address, 4)
	if err != nil {
		return nil, err
	}
	isNew := string(start) == "OHDR"
	l := &linking{has: map[string]bool{}, all: all}
	if i := slices.IndexFunc(all, func(m message) bool { return m.kind == msgSymbolTable }); i >= 0 {
		if l.table = &all[i]; isNew || len(l.table.body) < 16 {
			return nil, unsupported("to add to a group with a symbol table and a header of version 2")
		}
		return l, f.eachSymbol(l.treeAddress(), l.heapAddress(),
			func(s symbol) error { l.has[s.name] = true; return nil })
	}
	return l, l.readHeaderLinks(isNew)
}

// treeAddress returns the address of the B-tree of the symbol table, which the group must have.
// heapAddress returns the address of its local heap, which contains the names.
func (l *linking) treeAddress() uint64 { return (&cursor{b: l.table.body}).readUint(8) }
func (l *linking) heapAddress() uint64 {
	return (&cursor{b: l.table.body[8:]}).readUint(8)
}

// readHeaderLinks reads the names of the links that are stored in the object header into l.has.
// isNew means a header of version 2. The error wraps [ErrUnsupported] for version 1 and for
// links in a heap.
func (l *linking) readHeaderLinks(isNew bool) error {
	if !isNew {
		return unsupported("to add to a group with links in a header of version 1")
	}
	for _, m := range l.all {
		c := &cursor{b: m.body}
		switch m.kind {
		case msgLinkInfo:
			c.takeBytes(1)
			if c.readInt(1)&linksCounted != 0 {
				c.takeBytes(8)
			}
			if c.readUint(8) != undefined {
				return unsupported("to add to a group with links in a heap")
			}
		case msgLink:
			l.has[linkName(c)] = true
		}
	}
	return nil
}

// linksCounted is the link info flag of a group that tracks the creation order of its links.
const linksCounted = 1

// linkName returns the name in a link message, or "" if the message is cut short.
func linkName(c *cursor) string {
	c.takeBytes(1)
	flags := c.readInt(1)
	for _, field := range [][2]int{{8, 1}, {4, 8}, {16, 1}} { // flag and size of an optional field
		if flags&field[0] != 0 {
			c.takeBytes(field[1])
		}
	}
	return string(c.takeBytes(c.readInt(1 << (flags & 3))))
}

// linkMembers returns the patches that add members, header addresses by name, to an existing
// group. Data that the patches refer to is written at the end of the file first.
func (w *Writer) linkMembers(group string, members map[string]uint64) ([]patch, error) {
	l, err := w.old.linksOf(group)
	if err != nil {
		return nil, err
	}
	if l.table != nil {
		return w.linkInTable(group, l, members)
	}
	return w.linkInHeader(w.old.file.groups[group], l, members)
}

// linkInHeader copies all messages of the header at address, a group's, to a new block at the
// end of the file and adds links to members, header addresses by name, there. The returned patch
// turns the first block of the header into a continuation message that refers to the new block.
// The error wraps [ErrUnsupported] if that block is too small.
func (w *Writer) linkInHeader(address uint64, l *linking, members map[string]uint64) ([]patch, error) {
	first, _, _, err := w.old.file.readFirstBlock(address)
	if err != nil {
		return nil, err
	}
	b, err := w.old.file.readAt(first.address, int(first.size))
	if err != nil {
		return nil, err
	}
	p := &piece{in: first, b: slices.Clone(b)}
	room, order, err := p.messageArea(address, w.old.file)
	if err != nil {
		return nil, err
	}
	more := &moreLinks{b: []byte("OCHK"), order: order, number: undefined}
	for _, m := range l.all {
		more.copyMessage(m)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		more.add(name, members[name])
	}
	more.b = le.AppendUint32(more.b, lookup3(more.b))
	p.writeContinuation(room, order, block{w.append(more.b), uint64(len(more.b))})
	p.updateChecksum()
	return []patch{{first.address, p.b}}, w.err
}

// moreLinks builds the continuation block: the existing messages of a group's header, followed
// by new links. copyMessage must be called for all messages before add.
type moreLinks struct {
	b      []byte
	order  int    // width of the creation order field of a message
	info   int    // offset in b of the group's link counter
	number uint64 // next creation order; undefined if not tracked
}

// copyMessage appends a copy of an existing message. It finds the group's link counter, if there
// is one.
func (l *moreLinks) copyMessage(m message) {
	if m.kind == 0 { // NIL message
		return
	}
	l.b = le.AppendUint16(append(l.b, byte(m.kind)), uint16(len(m.body)))
	l.b = append(append(l.b, byte(m.flags)), m.order...)
	if m.kind == msgLinkInfo && len(m.body) >= 2+8 && m.body[1]&linksCounted != 0 {
		l.info, l.number = len(l.b)+2, le.Uint64(m.body[2:])
	}
	l.b = append(l.b, m.body...)
}

// add appends a hard link to the object with the given header address.
func (l *moreLinks) add(name string, address uint64) {
	body := linkMessage(name, address)
	if l.number != undefined {
		const numbered, at = 4, 2 // the order precedes the character set
		body[1] |= numbered
		body = slices.Insert(body, at, le.AppendUint64(nil, l.number)...)
		l.number++
		le.PutUint64(l.b[l.info:], l.number)
	}
	l.b = appendMessage(l.b, msgLink, l.order, body)
}

// linkInTable writes a new symbol table with the existing entries and members, header addresses
// by name, at the end of the file. The returned patches store its location in the group's header
// and in all places that cache the location.
func (w *Writer) linkInTable(group string, l *linking, members map[string]uint64) ([]patch, error) {
	var all []symbol
	if err := w.old.file.eachSymbol(l.treeAddress(), l.heapAddress(), func(s symbol) error {
		if s.kind == symbolGroup { // its symbol table may move, too
			s.kind, s.known = 0, make([]byte, len(s.known))
		}
		all = append(all, s)
		return nil
	}); err != nil {
		return nil, err
	}
	for name, address := range members {
		all = append(all, symbol{name: name, header: address, known: make([]byte, 16)})
	}
	slices.SortFunc(all, func(a, b symbol) int { return cmp.Compare(a.name, b.name) })
	block, err := w.old.file.readAppendFields()
	if err != nil {
		return nil, err
	}
	if block.symbols < 1 || block.children < 1 {
		return nil, malformed("nodes of %d symbols in trees of %d children", block.symbols, block.children)
	}
	place := w.writeSymbolTable(all, block)
	patches := []patch{{l.table.at, place}}
	for _, at := range append(w.old.cachedAddresses(group), block.known) {
		b, err := w.old.file.readAt(at, len(place))
		if err != nil {
			return nil, err
		}
		if at != 0 && slices.Equal(b, l.table.body[:len(place)]) {
			patches = append(patches, patch{at, place})
		}
	}
	return patches, w.err
}

// cachedAddresses returns the addresses at which the parent group caches the location of a
// group's symbol table, or nil if it does not.
func (a *appended) cachedAddresses(group string) (places []uint64) {
	above, _ := path.Split(group)
	l, err := a.linksOf(strings.TrimSuffix(above, "/"))
	if err != nil || l.table == nil {
		return nil
	}
	a.file.eachSymbol(l.treeAddress(), l.heapAddress(), func(s symbol) error {
		if s.kind == symbolGroup && s.header == a.file.groups[group] {
			places = append(places, s.at)
		}
		return nil
	})
	return places
}
