package arena

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A board is the directory of a domain's names. It is a ring in which a put takes any free slot,
// and the message stays there, readable by every participant, until a get takes it out by its name.
// The first block of each message is the board itself, for two reasons. The board lives as long as
// it has a message, even after its maker is gone. And the put's stamp on the board excludes other
// puts, so that a name is on it only once.

// The body of a name's slot is a label: the length of the name, the name, and the name's value
// unless that is spilled. A lookup may read the label while it changes, and detects that
// afterwards. So the label must be read and written by words.
//
// A name stands in one of a few slots in each level of the board. If all of these slots are taken,
// the board gets another level. So a lookup takes as long among thousands of names as among few,
// and a name never moves. The levels follow each other in the ring, and each is twice as long as
// the one before.

const (
	// MaxName is the maximum length of a name in bytes.
	MaxName = 192
	// MaxNames is the maximum number of names in a domain.
	MaxNames = word.MaxTransit // each name counts as a message in transit of the board
)

const (
	// of all levels; large enough for names to run out before the slots of a level do
	boardSlots  = 8192
	firstLevel  = 64
	levelChoice = 8 // slots of one level in which a given name may stand
)

// acquireBoard returns a view of the board. The caller then holds the board's block once more and
// must release it. If there is no board, it makes one, or returns [ErrNotExist] if make is false.
func (d *Domain) acquireBoard(ctx context.Context, make bool) (*Ring, error) {
	for {
		h := Handle(d.mem.Header.Names.Load())
		if h != 0 {
			r, err := d.openBoard(ctx, h)
			if !errors.Is(err, ErrStale) {
				return r, err
			}
		}
		if !make {
			return nil, ErrNotExist
		}
		if r, err := d.replaceBoard(ctx, h); r != nil || err != nil {
			return r, err
		}
	}
}

func (d *Domain) openBoard(ctx context.Context, h Handle) (*Ring, error) {
	if err := d.importBlock(ctx, h); err != nil {
		return nil, err
	}
	b := &d.mem.Blocks[h.Block()]
	r, err := d.ringOf(b)
	if err == nil && (layout.ExtentKind(b.Extent.Load()) != layout.ObjectRing || !r.hasFlags(layout.RingBoard)) {
		err = reportCorruption("the header's board of names", uint64(h))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the board of names in %v: %w", h, err), d.Release(h))
	}
	r.h = h
	return r, nil
}

// replaceBoard makes a board in place of old, which is gone. The caller then holds the board's
// block once. replaceBoard returns nil without an error if another process has made a board. The
// new board is freed if its maker dies or releases it before a name is bound, and is then
// replaced in turn.
//
// The CAS starts from the stale handle (docs/memory.md, "Rings, ends and other objects"), so if
// two processes find no board, one of them installs its own and the other one releases its own.
func (d *Domain) replaceBoard(ctx context.Context, old Handle) (*Ring, error) {
	const size = layout.RingHeaderSize + boardSlots*layout.SlotSize
	h, err := d.allocObject(ctx, size, 16*layout.PageSize, layout.ObjectRing)
	if err != nil {
		return nil, err
	}
	hdr, err := d.ringHeader(&d.mem.Blocks[h.Block()])
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	hdr.Flags.Store(layout.RingBoard)
	hdr.Limit.Store(MaxNames)
	hdr.Capacity.Store(boardSlots)
	if !d.mem.Header.Names.CAS(uint64(old), uint64(h)) {
		return nil, d.Release(h)
	}
	r, err := d.openBoard(ctx, h)
	return r, errors.Join(err, d.Release(h))
}

// A level is a range of slots of a board.
type level struct{ begin, slots uint64 }

// levelCount returns the number of complete levels in a board with the given number of slots.
func levelCount(slots uint64) int { return bits.Len64(slots/firstLevel+1) - 1 }

func levelAt(k int) level { return level{firstLevel<<k - firstLevel, firstLevel << k} }

// firstChoice returns the first of the slots in level k that a name with the given hash may use.
// Each level uses other bits of the hash, so that names that collide in one level differ in the
// next.
func (v level) firstChoice(k int, hash uint64) uint64 {
	return v.begin + bits.RotateLeft64(hash, -9*k)%(v.slots/levelChoice)*levelChoice
}

// hashName returns a hash that must be the same in all processes.
func hashName(name string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, followed by a mixing step
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	return h ^ h>>33
}

// findName returns the slot with the name and the slot's word, or nil. It begins with the last
// level, which holds half of all slots.
//
// Invariant (docs/memory.md, "Names"): pages are only ever added to a board, and they must be added
// before a slot in them becomes FULL. So findName looks at all levels that can hold the name.
func (r *Ring) findName(name string) (*layout.Slot, word.Slot) {
	label, hash := makeLabel(name, nil), hashName(name)
	for k := levelCount(r.backedSlots()) - 1; k >= 0; k-- {
		first := levelAt(k).firstChoice(k, hash)
		for i := first; i < first+levelChoice; i++ {
			s := r.slot(i)
			if w := s.Word.Load(); w.State() == word.SlotFull && s.HasPrefix(label) {
				return s, w
			}
		}
	}
	return nil, 0
}

// backedSlots returns the number of slots with pages.
func (r *Ring) backedSlots() uint64 {
	r.isBacked(r.cap - 1)
	return r.ready.Load()
}

// claimName claims a free slot for the name, and returns the slot and its lap. The caller's lane
// must have its stamp on the board, which excludes other puts. So a slot that a dead lane has
// claimed is free again once the dead lane's stamp is cleared. It returns [ErrExist] or
// [ErrTooManyNames], or unbacked if the board must grow first.
func (r *Ring) claimName(l *lane, name string) (*layout.Slot, uint64, error) {
	if s, _ := r.findName(name); s != nil {
		return nil, 0, ErrExist
	}
	hash, ready := hashName(name), levelCount(r.backedSlots())
	for k := range levelCount(r.cap) {
		v := levelAt(k)
		if k >= ready {
			return nil, 0, unbacked(v.begin + v.slots - 1)
		}
		first := v.firstChoice(k, hash)
		for i := first; i < first+levelChoice; i++ {
			s := r.slot(i)
			w := s.Word.Load()
			if st := w.State(); st != word.SlotEmpty && st != word.SlotSkip {
				continue
			}
			if lap := w.Lap(); s.Word.CAS(w, word.MakeSlot(lap, word.SlotWriting, l.id)) {
				return s, lap, nil
			}
		}
	}
	return nil, 0, ErrTooManyNames
}

// takeName removes the name's message from the board into m, with the message's references. It
// returns [ErrNotExist] if the name is not bound.
func (r *Ring) takeName(l *lane, name string, m *Message) error {
	for {
		s, w := r.findName(name)
		if s == nil {
			return ErrNotExist
		}
		if lap := w.Lap(); s.Word.CAS(w, word.MakeSlot(lap, word.SlotReading, l.id)) {
			return r.completeGet(l, m, s, lap)
		}
	}
}

// copyName copies the name's message into m, leaves it on the board, and takes references to its
// blocks. It returns [ErrNotExist] if the name is not bound.
func (r *Ring) copyName(l *lane, name string, m *Message) error {
	for {
		s, w := r.findName(name)
		if s == nil {
			return ErrNotExist
		}
		if ok, err := r.peekNamed(l, s, w, m); ok || err != nil {
			return err
		}
	}
}

// peekNamed copies the message of a name's slot into m, without the name, and takes references
// to its blocks, except the board. It returns false, and has taken none, if the slot's word is
// no longer w.
func (r *Ring) peekNamed(l *lane, s *layout.Slot, w word.Slot, m *Message) (bool, error) {
	ok, err := r.peekMessage(l, s, w, m, 1)
	if !ok || err != nil || m.spill != 0 {
		return ok, err
	}
	m.Body = m.Body[1+m.Body[0]:]
	return true, nil
}

// peekMessage copies a message from its slot into m, leaves it there, and takes references to
// its blocks except the first own of them. own is 1 on the board, where each message carries the
// board itself, and otherwise 0. It returns false, and has taken no reference, if the slot's
// word is no longer w.
func (r *Ring) peekMessage(l *lane, s *layout.Slot, w word.Slot, m *Message, own int) (bool, error) {
	meta := s.Meta.Load()
	text, err := s.ReadBody(m.body[:0])
	for i := range m.table {
		m.table[i] = Handle(s.BlockWord(i).Load())
	}
	if s.Word.Load() != w {
		return false, nil
	}
	n := int(meta >> 8 & 0xff)
	if err == nil && own > 0 {
		err = layout.CheckLabel(text)
	}
	if err != nil || n > layout.SlotBlocks {
		return false, ErrCorrupt
	}
	m.d, m.spill, m.Body = r.d, 0, text
	if meta&layout.MetaSpill != 0 {
		return r.peekSpilled(l, s, w, m, own)
	}
	if n < own {
		return false, ErrCorrupt
	}
	m.Blocks = m.table[own:n]
	return r.holdBlocks(l, s, w, m.Blocks)
}

func (r *Ring) peekSpilled(l *lane, s *layout.Slot, w word.Slot, m *Message, own int) (ok bool, err error) {
	ok, err = r.holdBlocks(l, s, w, m.table[:1])
	if !ok {
		return false, err
	}
	m.spill = m.table[0]
	p, err := r.d.bytesOf(&r.d.mem.Blocks[m.spill.Block()])
	if err == nil {
		m.Blocks, m.Body, err = decodeSpill(p)
	}
	if err == nil && len(m.Blocks) < own {
		err = ErrCorrupt
	}
	if err == nil {
		m.Blocks = m.Blocks[own:]
		ok, err = r.holdBlocks(l, s, w, m.Blocks)
	}
	if !ok || err != nil {
		l.releaseBlock(m.spill.Block())
	}
	return ok && err == nil, err
}

// holdBlocks takes a reference to each block and reads the slot's word again. If the word is
// still w, the message held the blocks when this participant's bits were set, so the blocks
// stay. Otherwise holdBlocks releases them and returns false. It returns [ErrCorrupt], and has
// taken no reference, if a handle is invalid.
func (r *Ring) holdBlocks(l *lane, s *layout.Slot, w word.Slot, blocks []Handle) (bool, error) {
	for _, h := range blocks {
		if !h.IsWellFormed() || uint64(h.Block()) >= r.d.mem.Header.Blocks.Load() {
			return false, ErrCorrupt
		}
	}
	for _, h := range blocks {
		r.d.addRef(h.Block())
	}
	if s.Word.Load() == w {
		return true, nil
	}
	for _, h := range blocks {
		l.releaseBlock(h.Block())
	}
	return false, nil
}

// makeLabel returns the body of a name's slot: the length of the name in one byte, the name, and
// body.
func makeLabel(name string, body []byte) []byte {
	b := append(make([]byte, 0, 1+len(name)+len(body)), byte(len(name)))
	return append(append(b, name...), body...)
}
