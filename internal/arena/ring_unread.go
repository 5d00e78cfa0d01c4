package arena

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// unreadByQueue returns the n queues with the most memory in unread messages, the one with the
// most first. It takes no lock and holds no reference, so it may miss changes, or count memory
// twice.
func (d *Domain) unreadByQueue(n int) (all []Unread) {
	names := d.queueNames()
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		u := d.countUnread(&d.mem.Blocks[i])
		if u.Bytes == 0 {
			continue
		}
		u.Queue, u.Name = word.MakeHandle(i, d.mem.Blocks[i].State.Load().Generation()).String(), names[i]
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b Unread) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(n, len(all))]
}

// countUnread counts the unread messages in block b. It returns a zero Unread if b is not a ring.
func (d *Domain) countUnread(b *layout.Block) (u Unread) {
	if b.State.Load()&word.AllocBit == 0 || layout.ExtentKind(b.Extent.Load()) != layout.ObjectRing || !b.IsOwned() {
		return u
	}
	r, err := d.ringOf(b)
	if err != nil || r.hasFlags(layout.RingBoard) {
		return u
	}
	r.forEachSlot(func(s *layout.Slot, w word.Slot) {
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
	if b := &d.mem.Blocks[h.Block()]; d.mem.IsInTransit(h, word.TOne) && !b.IsOwned() {
		return int64(b.Committed.Load())
	}
	return 0
}

// carriedBlocks returns the blocks of the message in s, sorted and without duplicates. It
// returns none if the slot's word is no longer w. It takes no reference.
func (d *Domain) carriedBlocks(s *layout.Slot, w word.Slot) (all []Handle) {
	meta := s.Meta.Load()
	n := min(meta>>8&0xff, layout.SlotBlocks)
	for i := range n {
		all = append(all, Handle(s.BlockWord(int(i)).Load()))
	}
	all = slices.DeleteFunc(all, func(h Handle) bool { return !d.mem.IsInTransit(h, word.TOne) })
	if meta&layout.MetaSpill != 0 && len(all) == 1 {
		all = append(all, d.spilledTable(all[0])...)
	}
	if s.Word.Load() != w {
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
	p, ok := d.mem.BlockBytes(&d.mem.Blocks[h.Block()]) // a block that is reused meanwhile is not corruption
	if !ok || len(p) < 16 {
		return nil
	}
	n := min(binary.LittleEndian.Uint64(p), uint64(len(p)-16)/8)
	for i := range n {
		if t := Handle(binary.LittleEndian.Uint64(p[8+8*i:])); d.mem.IsInTransit(t, word.TOne) {
			table = append(table, t)
		}
	}
	return table
}

// label returns the label set by the ring's maker, which may be garbage.
func (r *Ring) label() string {
	text, _, _ := bytes.Cut(r.hdr.Text[:], []byte{0})
	return strings.ToValidUTF8(string(text), "")
}

// queueNames maps the block index of each ring that is bound to a name to that name.
func (d *Domain) queueNames() map[uint32]string {
	names := map[uint32]string{}
	d.withBoard("", func(_ *lane, r *Ring) error {
		r.forEachSlot(func(s *layout.Slot, w word.Slot) {
			label, err := s.ReadLabel(nil)
			if w.State() != word.SlotFull || err != nil {
				return
			}
			for _, h := range d.carriedBlocks(s, w) {
				if layout.ExtentKind(d.mem.Blocks[h.Block()].Extent.Load()) == layout.ObjectRing {
					names[h.Block()] = string(label[1 : 1+label[0]])
				}
			}
		})
		return nil
	})
	return names
}
