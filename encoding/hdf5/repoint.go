package hdf5

import (
	"slices"
)

// patch is a pending overwrite of existing bytes in the file. Bytes may be overwritten only when
// everything that they refer to is on disk.
type patch struct {
	address uint64
	bytes   []byte
}

// updateIndex returns the patches that store tree, the address of the new chunk index, and the
// shape in the header of an existing data set, one patch for each header block. address is the
// header's. Data that the patches refer to is written at the end of the file first.
func (w *Writer) updateIndex(address uint64, d *Output, tree uint64) ([]patch, error) {
	all, err := w.old.file.readMessages(address)
	if err != nil {
		return nil, err
	}
	var pieces []*piece
	for _, kind := range []int{msgLayout, msgDataspace} {
		m := all[slices.IndexFunc(all, func(m message) bool { return m.kind == kind })]
		i := slices.IndexFunc(pieces, func(p *piece) bool { return p.in == m.in })
		if i < 0 {
			i = len(pieces)
			b, err := w.old.file.readAt(m.in.address, int(m.in.size))
			if err != nil {
				return nil, err
			}
			pieces = append(pieces, &piece{in: m.in, b: slices.Clone(b)})
		}
		body := pieces[i].b[m.at-m.in.address:][:len(m.body)]
		switch {
		case kind == msgDataspace:
			setDims(body, d.shape)
		case body[0] == 3:
			le.PutUint64(body[3:], tree) // after version, class and rank
		default:
			pieces[i].layout = d.layoutMessage(tree)
		}
	}
	var patches []patch
	for _, p := range pieces {
		if p.layout != nil {
			if err := w.moveMessages(address, p); err != nil {
				return nil, err
			}
		}
		p.updateChecksum()
		patches = append(patches, patch{p.in.address, p.b})
	}
	return patches, nil
}

// setDims overwrites the shape in the body of a dataspace message, which must have as many
// dimensions.
func setDims(body []byte, shape []int) {
	dims := body[4:]
	if body[0] == 1 {
		dims = body[8:]
	}
	for i, n := range shape {
		le.PutUint64(dims[8*i:], uint64(n))
	}
}

// piece is a copy of a header block that is being modified, to become a [patch].
type piece struct {
	in     block
	b      []byte
	layout []byte // replacement of a shorter layout message
}

// updateChecksum updates the checksum of a block of a header of version 2. Version 1 has none.
func (p *piece) updateChecksum() {
	if p.isNew() {
		end := len(p.b) - checksumSize
		le.PutUint32(p.b[end:], lookup3(p.b[:end]))
	}
}

// isNew reports whether the block belongs to a header of version 2.
func (p *piece) isNew() bool { return string(p.b[:4]) == "OHDR" || string(p.b[:4]) == "OCHK" }

// moveMessages copies the messages of a block to a new block at the end of the file, with the
// new layout message, and turns p into a continuation. address is the object header's. A layout
// message cannot grow in place. The error wraps [ErrUnsupported] if p is too small for a
// continuation.
func (w *Writer) moveMessages(address uint64, p *piece) error {
	room, order, err := p.messageArea(address, w.old.file)
	if err != nil {
		return err
	}
	moved := []byte("OCHK")
	for c := (&cursor{b: room}); len(c.b) >= 4+order; {
		head := c.takeBytes(4 + order)
		body := c.takeBytes(int(le.Uint16(head[1:])))
		switch {
		case c.short:
			return malformed("a message in a header is cut short")
		case head[0] == 0: // NIL message
			continue
		case head[0] == msgLayout:
			head, body = slices.Clone(head), p.layout
			le.PutUint16(head[1:], uint16(len(body)))
		}
		moved = append(append(moved, head...), body...)
	}
	moved = le.AppendUint32(moved, lookup3(moved))
	p.writeContinuation(room, order, block{w.append(moved), uint64(len(moved))})
	return w.err
}

// messageArea returns the message area of a block, a part of p.b, and the width in bytes of the
// creation order field of its messages. address is the address of the object header. The error
// wraps [ErrUnsupported] if the area is too small for a continuation message, or the header has
// version 1.
func (p *piece) messageArea(address uint64, f *File) (room []byte, order int, err error) {
	if !p.isNew() {
		return nil, 0, unsupported("chunks in an index of libver=\"latest\" under a header of version 1")
	}
	_, prefix, flags, err := f.readFirstBlock(address)
	if err != nil {
		return nil, 0, err
	}
	from := 4
	if p.in.address == address {
		from = int(prefix)
	}
	if flags&headerOrder != 0 {
		order = 2
	}
	if len(p.b) < from+checksumSize+4+order+16 {
		return nil, 0, unsupported("a header of %d bytes without room for a continuation", len(p.b))
	}
	return p.b[from : len(p.b)-checksumSize], order, nil
}

// writeContinuation replaces the messages in room, the result of messageArea, by a continuation
// message that refers to the block in. The rest of the area becomes a NIL message or a gap.
// order is the width in bytes of the creation order field.
func (p *piece) writeContinuation(room []byte, order int, in block) {
	to := appendMessage(room[:0], msgContinuation, order,
		le.AppendUint64(le.AppendUint64(nil, in.address), in.size))
	clear(room[len(to):])
	if left := len(room) - len(to); left >= 4+order {
		appendMessage(to, 0, order, make([]byte, left-4-order))
	}
}

// appendMessage appends a message without flags to a block of a header of version 2. order is
// the width in bytes of the creation order field, which is zero.
func appendMessage(b []byte, kind, order int, body []byte) []byte {
	b = le.AppendUint16(append(b, byte(kind)), uint16(len(body)))
	b = append(b, make([]byte, 1+order)...)
	return append(b, body...)
}
