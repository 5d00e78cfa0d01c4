package arena

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// viewQueue reads the ring in block i. w is the state word that the caller has read. viewQueue
// returns false if the block is not a ring, or if it changed meanwhile.
func (d *Domain) viewQueue(i uint32, b *layout.Block, w word.State) (q observe.QueueView, ok bool) {
	r := d.peekRing(b)
	if r == nil || r.hasFlags(layout.RingBoard) {
		return q, false
	}
	head, tail, flags := r.hdr.Head.Load(), r.hdr.Tail.Load(), r.hdr.Flags.Load()
	q = observe.QueueView{
		Block: word.MakeHandle(i, w.Generation()).String(), Label: peekLabel(r.hdr), Capacity: int(r.limit),
		Depth: int(min(max(int64(tail-head), 0), int64(r.limit))), Puts: tail, Gets: head,
		Bytes: int64(b.Committed.Load()), Latest: r.news, Finished: flags&layout.RingFinished != 0,
		Senders:   d.viewEnd(Handle(r.hdr.Senders.Load()), layout.ObjectSenders, &r.hdr.NotFull),
		Receivers: d.viewEnd(Handle(r.hdr.Receivers.Load()), layout.ObjectReceivers, &r.hdr.NotEmpty),
	}
	q.Senders.Gone = flags&layout.RingNoSenders != 0
	q.Receivers.Gone = flags&layout.RingNoReceivers != 0
	q.Senders.DeadPID = word.Lock(r.hdr.Dead[0].Load()).PID()
	q.Receivers.DeadPID = word.Lock(r.hdr.Dead[1].Load()).PID()
	if r.news {
		q.News = r.peekNewest()
	}
	return q, w.IsSameUse(b.State.Load())
}

// peekNewest returns the body of the newest message. It returns nil if there is none, if the
// message is long or has blocks, or if it was replaced meanwhile. It takes no reference.
func (r *Ring) peekNewest() []byte {
	_, s, w := r.findNewest()
	if s == nil {
		return nil
	}
	meta := s.Meta.Load()
	body, err := s.ReadBody(nil)
	if err != nil || meta&layout.MetaSpill != 0 || meta>>8&0xff != 0 || s.Word.Load() != w {
		return nil
	}
	return body
}

// peekRing returns a view of the ring in block b, or nil if b has no valid ring. This process need
// not hold the block.
func (d *Domain) peekRing(b *layout.Block) *Ring {
	p, ok := d.mem.BlockBytes(b)
	if !ok || len(p) < layout.RingHeaderSize {
		return nil
	}
	_, most, ok := d.mem.ExtentRange(b.Extent.Load())
	if !ok {
		return nil
	}
	r, err := d.ringIn(b, (*layout.RingHeader)(unsafe.Pointer(&p[0])), most)
	if err != nil {
		return nil
	}
	return r
}

// viewEnd reads the token of a ring's end. kind is layout.ObjectSenders or
// layout.ObjectReceivers, and waiting is the ring's bitmap of processes that wait at this end.
// Without a valid token, the view has only the waiting processes.
func (d *Domain) viewEnd(token Handle, kind layout.ObjectKind, waiting *layout.Bitmap) observe.EndView {
	v := observe.EndView{PIDs: []int{}, Waiting: d.pidsIn(waiting)}
	if !d.mem.IsAllocated(token) {
		return v
	}
	b := &d.mem.Blocks[token.Block()]
	if layout.ExtentKind(b.Extent.Load()) != kind {
		return v
	}
	pids, n := d.pidsIn(&b.Own), int(b.State.Load().TransitCount())
	if d.mem.IsAllocated(token) {
		v.PIDs, v.InTransit = pids, n
	}
	return v
}

// peekLabel is like the method label, for a ring in a block that may have been reused meanwhile. It
// is exempt from the race detector, because another process may write the text at the same time.
//
//go:norace
func peekLabel(h *layout.RingHeader) string {
	text := h.Text
	before, _, _ := bytes.Cut(text[:], []byte{0})
	return strings.ToValidUTF8(string(before), "")
}

// listBound reads the board of names. It returns the names of the bound blocks by block index,
// and the bound values by name. Both maps are empty if there is no board.
func (d *Domain) listBound() (map[uint32][]string, map[string]observe.Bound) {
	names, bound := map[uint32][]string{}, map[string]observe.Bound{}
	h := Handle(d.mem.Header.Names.Load())
	if !d.mem.IsAllocated(h) {
		return names, bound
	}
	b := &d.mem.Blocks[h.Block()]
	r := d.peekRing(b)
	if r == nil || !r.hasFlags(layout.RingBoard) {
		return names, bound
	}
	r.forEachSlot(func(s *layout.Slot, w word.Slot) {
		if w.State() != word.SlotFull {
			return
		}
		label, err := s.ReadLabel(nil)
		blocks := d.carriedBlocks(s, w)
		if err != nil || s.Word.Load() != w || !d.mem.IsAllocated(h) {
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
