package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// A board is the directory of a domain's names: a ring in which a put takes any free slot, whose
// message stays there for everybody to read until a get takes it out by its name. Each message
// carries the board itself first, for two reasons. The board lives as long as it has a message,
// even when its maker is gone. And the put's stamp on the board keeps other puts out, so that a
// name is on it once.

// A name's slot: its body is a label, the length of the name, the name, and what the name stands
// for unless that is spilled. A reader that looks a name up reads the label while it may change,
// and finds out afterwards: so it is read and written by words.

const (
	// MaxName is the most bytes of a name.
	MaxName = 192
	// MaxNames is how many names a domain has room for.
	MaxNames = 2048 // each counts as a message in transit of the board
)

// board returns a view of the board, whose block this process then holds once more. Where there is
// none it makes one, or returns ErrNotExist.
func (d *Domain) board(make bool) (*Ring, error) {
	for {
		h := Handle(d.hdr.names.Load())
		if h != 0 {
			r, err := d.openBoard(h)
			if !errors.Is(err, ErrStale) {
				return r, err
			}
		}
		if !make {
			return nil, ErrNotExist
		}
		if r, err := d.replaceBoard(h); r != nil || err != nil {
			return r, err
		}
	}
}

func (d *Domain) openBoard(h Handle) (*Ring, error) {
	if err := d.Import(h); err != nil {
		return nil, err
	}
	r, err := d.ringOf(&d.blocks[h.index()])
	if err == nil && !r.finished(ringBoard) {
		err = ErrCorrupt
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the board of names in %v: %w", h, err), d.Release(h))
	}
	r.h = h
	return r, nil
}

// replaceBoard makes a board in the place of old, which is gone, or returns nil if somebody has.
// The new one is free again if its maker dies, or lets go before there is a name on it, and is
// replaced in turn.
//
// The CAS is from the stale handle (docs/memory.md, "Rings, ends and other objects"), so of two
// processes that find no board one puts its own there, and the other one lets go of what it has
// made.
func (d *Domain) replaceBoard(old Handle) (*Ring, error) {
	h, err := d.allocObject(ringHead+MaxNames*slotSize, 16*pageSize, objectRing)
	if err != nil {
		return nil, err
	}
	hdr, err := d.ringHeader(&d.blocks[h.index()])
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	hdr.flags.Store(ringBoard)
	hdr.limit.Store(MaxNames)
	hdr.capacity.Store(MaxNames)
	if !d.hdr.names.CAS(uint64(old), uint64(h)) {
		return nil, d.Release(h)
	}
	r, err := d.openBoard(h)
	return r, errors.Join(err, d.Release(h))
}

// find returns the slot with the name and its word, or nil.
func (r *Ring) find(name string) (*slot, slotWord) {
	label := makeLabel(name, nil)
	for i := uint64(0); i < r.cap && r.backed(i); i++ {
		s := r.slot(i)
		if w := s.word.Load(); w.state() == slotFull && s.begins(label) {
			return s, w
		}
	}
	return nil, 0
}

// claimName takes a free slot for the name. Our stamp on the board keeps others from putting one
// meanwhile; what the dead left is free once their stamp is cleared.
func (r *Ring) claimName(l *lane, name string) (*slot, uint64, error) {
	if s, _ := r.find(name); s != nil {
		return nil, 0, ErrExist
	}
	for i := range r.cap {
		if !r.backed(i) {
			return nil, 0, unbacked(i)
		}
		s := r.slot(i)
		w := s.word.Load()
		if st := w.state(); st != slotEmpty && st != slotSkip {
			continue
		}
		if lap := w.lap(); s.word.CAS(w, makeSlotWord(lap, slotWriting, l.id)) {
			return s, lap, nil
		}
	}
	return nil, 0, ErrTooManyNames
}

// takeName takes the name's message out.
func (r *Ring) takeName(l *lane, name string, m *Message) error {
	for {
		s, w := r.find(name)
		if s == nil {
			return ErrNotExist
		}
		if lap := w.lap(); s.word.CAS(w, makeSlotWord(lap, slotReading, l.id)) {
			return r.take(l, m, s, lap)
		}
	}
}

// copyName copies the name's message out of its slot, in which it stays, and takes references of
// its blocks.
func (r *Ring) copyName(l *lane, name string, m *Message) error {
	for {
		s, w := r.find(name)
		if s == nil {
			return ErrNotExist
		}
		if ok, err := r.peek(l, s, w, m); ok || err != nil {
			return err
		}
	}
}

// peek reports false if the slot's word is not w any more.
func (r *Ring) peek(l *lane, s *slot, w slotWord, m *Message) (bool, error) {
	ok, err := r.peekAll(l, s, w, m, 1)
	if !ok || err != nil || m.spill != 0 {
		return ok, err
	}
	m.Body = m.Body[1+m.Body[0]:]
	return true, nil
}

// peekAll copies a message out of its slot, in which it stays, and takes references of its blocks
// but for the first own of them.
func (r *Ring) peekAll(l *lane, s *slot, w slotWord, m *Message, own int) (bool, error) {
	meta := s.meta.Load()
	text, err := s.text(m.body[:0])
	for i := range m.table {
		m.table[i] = Handle(s.blocks[i].Load())
	}
	if s.word.Load() != w {
		return false, nil
	}
	n := int(meta >> 8 & 0xff)
	if err == nil && own > 0 {
		err = labelled(text)
	}
	if err != nil || n > slotBlocks {
		return false, ErrCorrupt
	}
	m.d, m.spill, m.Body = r.d, 0, text
	if meta&metaSpill != 0 {
		return r.peekSpilled(l, s, w, m, own)
	}
	if n < own {
		return false, ErrCorrupt
	}
	m.Blocks = m.table[own:n]
	return r.hold(l, s, w, m.Blocks)
}

func (r *Ring) peekSpilled(l *lane, s *slot, w slotWord, m *Message, own int) (ok bool, err error) {
	ok, err = r.hold(l, s, w, m.table[:1])
	if !ok {
		return false, err
	}
	m.spill = m.table[0]
	p, err := r.d.bytesOf(&r.d.blocks[m.spill.index()])
	if err == nil {
		m.Blocks, m.Body, err = unspill(p)
	}
	if err == nil && len(m.Blocks) < own {
		err = ErrCorrupt
	}
	if err == nil {
		m.Blocks = m.Blocks[own:]
		ok, err = r.hold(l, s, w, m.Blocks)
	}
	if !ok || err != nil {
		l.release(m.spill.index())
	}
	return ok && err == nil, err
}

// hold takes a reference of each block and looks at the slot once more: if its word is still w, its
// message has held them when our bits were set, and they stay.
func (r *Ring) hold(l *lane, s *slot, w slotWord, blocks []Handle) (bool, error) {
	for _, h := range blocks {
		if !h.wellFormed() || uint64(h.index()) >= r.d.hdr.blocks.Load() {
			return false, ErrCorrupt
		}
	}
	for _, h := range blocks {
		r.d.acquire(h.index())
	}
	if s.word.Load() == w {
		return true, nil
	}
	for _, h := range blocks {
		l.release(h.index())
	}
	return false, nil
}

// makeLabel returns the body of a name's slot.
func makeLabel(name string, body []byte) []byte {
	b := append(make([]byte, 0, 1+len(name)+len(body)), byte(len(name)))
	return append(append(b, name...), body...)
}

func (s *slot) words() *[slotBody / 8]Word { return (*[slotBody / 8]Word)(unsafe.Pointer(&s.body)) }

func (s *slot) setLabel(label []byte) {
	for i := 0; i < len(label); i += 8 {
		var b [8]byte
		copy(b[:], label[i:])
		s.words()[i/8].Set(binary.LittleEndian.Uint64(b[:]))
	}
}

// label reads the slot's label into b.
func (s *slot) label(b []byte) ([]byte, error) {
	b, err := s.text(b)
	if err == nil {
		err = labelled(b)
	}
	return b, err
}

// labelled returns ErrCorrupt unless b begins with a name.
func labelled(b []byte) error {
	if len(b) == 0 || int(b[0]) >= len(b) {
		return ErrCorrupt
	}
	return nil
}

// text reads the slot's body into b, by words.
func (s *slot) text(b []byte) ([]byte, error) {
	n := int(s.meta.Load() >> 16 & 0xffff)
	if n > slotBody {
		return nil, ErrCorrupt
	}
	for i := 0; i < n; i += 8 {
		b = binary.LittleEndian.AppendUint64(b, s.words()[i/8].Load())
	}
	return b[:n], nil
}

// begins reports whether the slot's label begins with the one of a name alone, whose first byte is
// its length.
func (s *slot) begins(label []byte) bool {
	for i := 0; i < len(label); i += 8 {
		var b [8]byte
		unused := 8 * (8 - copy(b[:], label[i:]))
		if (s.words()[i/8].Load()^binary.LittleEndian.Uint64(b[:]))<<unused != 0 {
			return false
		}
	}
	return true
}
