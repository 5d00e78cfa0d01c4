package arena

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// unreadByQueue returns the n queues with the most memory in unread messages. It takes no lock and
// holds no reference, so it may miss changes, or count memory twice.
func (d *Domain) unreadByQueue(n int) (all []Unread) {
	names := d.queueNames()
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		u := d.countUnread(&d.blocks[i])
		if u.Bytes == 0 {
			continue
		}
		u.Queue, u.Name = word.MakeHandle(i, d.blocks[i].w.Load().Generation()).String(), names[i]
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b Unread) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(n, len(all))]
}

// countUnread counts the unread messages in block b. It returns a zero Unread if b is not a ring.
func (d *Domain) countUnread(b *block) (u Unread) {
	if b.w.Load()&word.AllocBit == 0 || extKind(b.ext.Load()) != objectRing || !b.isOwned() {
		return u
	}
	r, err := d.ringOf(b)
	if err != nil || r.hasFlags(ringBoard) {
		return u
	}
	r.forEachSlot(func(s *slot, w word.Slot) {
		if w.State() != word.SlotFull {
			return
		}
		u.Messages++
		for _, h := range d.carriedBlocks(s, w) {
			u.Bytes += d.unreadBytes(h)
		}
	})
	u.Label = r.label()
	return u
}

// unreadBytes returns the committed bytes of a block that is held by messages only, otherwise 0.
func (d *Domain) unreadBytes(h Handle) int64 {
	if b := &d.blocks[h.Block()]; d.isInTransit(h, word.TOne) && !b.isOwned() {
		return int64(b.committed.Load())
	}
	return 0
}

// carriedBlocks returns the blocks of the message in s. It returns none if the slot's word is no
// longer w.
func (d *Domain) carriedBlocks(s *slot, w word.Slot) (all []Handle) {
	meta := s.meta.Load()
	n := min(meta>>8&0xff, slotBlocks)
	for i := range n {
		all = append(all, Handle(s.blockWord(int(i)).Load()))
	}
	all = slices.DeleteFunc(all, func(h Handle) bool { return !d.isInTransit(h, word.TOne) })
	if meta&metaSpill != 0 && len(all) == 1 {
		all = append(all, d.spilledTable(all[0])...)
	}
	if s.word.Load() != w {
		return nil
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// spilledTable returns the table of a spilled message without holding its block. The caller must
// check the slot's word afterwards, because the block may have been reused.
//
//go:norace
func (d *Domain) spilledTable(h Handle) (table []Handle) {
	p, ok := d.peekBytes(&d.blocks[h.Block()]) // a block that is reused meanwhile is not corruption
	if !ok || len(p) < 16 {
		return nil
	}
	n := min(binary.LittleEndian.Uint64(p), uint64(len(p)-16)/8)
	for i := range n {
		if t := Handle(binary.LittleEndian.Uint64(p[8+8*i:])); d.isInTransit(t, word.TOne) {
			table = append(table, t)
		}
	}
	return table
}

// setLabel sets the ring's label. It must be called before the ring has a capacity, while no other
// process reads the ring.
func (h *ring) setLabel(label string) { clear(h.text[copy(h.text[:], label):]) }

// label returns the label set by the ring's maker, which may be garbage.
func (r *Ring) label() string {
	text, _, _ := bytes.Cut(r.hdr.text[:], []byte{0})
	return strings.ToValidUTF8(string(text), "")
}

// queueNames maps the block index of each ring that is bound to a name to that name.
func (d *Domain) queueNames() map[uint32]string {
	names := map[uint32]string{}
	d.withBoard("", func(_ *lane, r *Ring) error {
		r.forEachSlot(func(s *slot, w word.Slot) {
			label, err := s.readLabel(nil)
			if w.State() != word.SlotFull || err != nil {
				return
			}
			for _, h := range d.carriedBlocks(s, w) {
				if extKind(d.blocks[h.Block()].ext.Load()) == objectRing {
					names[h.Block()] = string(label[1 : 1+label[0]])
				}
			}
		})
		return nil
	})
	return names
}
