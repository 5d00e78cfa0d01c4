package arena

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// viewQueue reads the ring in block i. w is the state word that the caller has read. viewQueue
// returns false if the block is not a ring, or if it changed meanwhile.
func (d *Domain) viewQueue(i uint32, b *block, w word.State) (q observe.QueueView, ok bool) {
	r := d.peekRing(b)
	if r == nil || r.hasFlags(ringBoard) {
		return q, false
	}
	head, tail, flags := r.hdr.head.Load(), r.hdr.tail.Load(), r.hdr.flags.Load()
	q = observe.QueueView{
		Block: word.MakeHandle(i, w.Generation()).String(), Label: peekLabel(r.hdr), Capacity: int(r.limit),
		Depth: int(min(max(int64(tail-head), 0), int64(r.limit))), Puts: tail, Gets: head,
		Bytes: int64(b.committed.Load()), Latest: r.news, Finished: flags&ringFinished != 0,
		Senders:   d.viewEnd(Handle(r.hdr.senders.Load()), objectSenders, &r.hdr.notFull),
		Receivers: d.viewEnd(Handle(r.hdr.receivers.Load()), objectReceivers, &r.hdr.notEmpty),
	}
	q.Senders.Gone = flags&ringNoSenders != 0
	q.Receivers.Gone = flags&ringNoReceivers != 0
	q.Senders.DeadPID = word.Lock(r.hdr.dead[0].Load()).PID()
	q.Receivers.DeadPID = word.Lock(r.hdr.dead[1].Load()).PID()
	if r.news {
		q.News = r.peekNewest()
	}
	return q, w.IsSameUse(b.w.Load())
}

// peekNewest returns the body of the newest message. It returns nil if there is none, if the
// message is long or has blocks, or if it was replaced meanwhile. It takes no reference.
func (r *Ring) peekNewest() []byte {
	_, s, w := r.findNewest()
	if s == nil {
		return nil
	}
	meta := s.meta.Load()
	body, err := s.readBody(nil)
	if err != nil || meta&metaSpill != 0 || meta>>8&0xff != 0 || s.word.Load() != w {
		return nil
	}
	return body
}

// peekRing returns a view of the ring in block b, or nil if b has no valid ring. This process need
// not hold the block.
func (d *Domain) peekRing(b *block) *Ring {
	p, ok := d.peekBytes(b)
	if !ok || len(p) < ringHead {
		return nil
	}
	_, most, ok := d.peekRange(b.ext.Load())
	if !ok {
		return nil
	}
	r, err := d.ringIn(b, (*ring)(unsafe.Pointer(&p[0])), most)
	if err != nil {
		return nil
	}
	return r
}

// viewEnd reads the token of a ring's end. waiting is the ring's bitmap of processes that wait at
// this end.
func (d *Domain) viewEnd(token Handle, kind objectKind, waiting *[ownWords]word.Word) observe.EndView {
	v := observe.EndView{PIDs: []int{}, Waiting: d.pidsIn(waiting)}
	if !d.isAllocated(token) {
		return v
	}
	b := &d.blocks[token.Block()]
	if extKind(b.ext.Load()) != kind {
		return v
	}
	pids, n := d.pidsIn(&b.own), int(b.w.Load().TransitCount())
	if d.isAllocated(token) {
		v.PIDs, v.InTransit = pids, n
	}
	return v
}

// peekLabel is like the method label, for a ring in a block that may have been reused meanwhile. It
// is exempt from the race detector, because another process may write the text at the same time.
//
//go:norace
func peekLabel(h *ring) string {
	text := h.text
	before, _, _ := bytes.Cut(text[:], []byte{0})
	return strings.ToValidUTF8(string(before), "")
}

// listBound reads the board. It returns the names of the bound blocks by block index, and the bound
// values by name.
func (d *Domain) listBound() (map[uint32][]string, map[string]observe.Bound) {
	names, bound := map[uint32][]string{}, map[string]observe.Bound{}
	h := Handle(d.hdr.names.Load())
	if !d.isAllocated(h) {
		return names, bound
	}
	b := &d.blocks[h.Block()]
	r := d.peekRing(b)
	if r == nil || !r.hasFlags(ringBoard) {
		return names, bound
	}
	r.forEachSlot(func(s *slot, w word.Slot) {
		if w.State() != word.SlotFull {
			return
		}
		label, err := s.readLabel(nil)
		blocks := d.carriedBlocks(s, w)
		if err != nil || s.word.Load() != w || !d.isAllocated(h) {
			return
		}
		name := string(label[1 : 1+label[0]])
		v := observe.Bound{Blocks: []string{}}
		for _, c := range blocks {
			if c != h { // every message of the board also carries the board itself
				v.Blocks = append(v.Blocks, c.String())
				names[c.Block()] = append(names[c.Block()], name)
			}
		}
		bound[name] = v
	})
	for _, all := range names {
		slices.Sort(all)
	}
	return names, bound
}
