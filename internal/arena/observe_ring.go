package arena

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// A QueueView describes a ring: a queue, one direction of a pipe, or a Latest.
type QueueView struct {
	Block    string   `json:"block"`
	Names    []string `json:"names,omitempty"`
	Label    string   `json:"label"` // name of the type of the messages
	Capacity int      `json:"capacity"`
	Depth    int      `json:"depth"`
	// Puts counts since the ring was made. It includes puts that were undone because their process
	// died.
	Puts  uint64 `json:"puts"`
	Gets  uint64 `json:"gets"`
	Bytes int64  `json:"bytes"` // committed bytes of its slots
	// Latest means that messages stay in the ring and every process reads the newest.
	Latest bool `json:"latest"`
	// News is the body of the newest message of a Latest, if it is short and has no blocks.
	News      []byte  `json:"news,omitempty"`
	Finished  bool    `json:"finished"` // no further puts
	Senders   EndView `json:"senders"`
	Receivers EndView `json:"receivers"`
}

// An EndView describes the sending or the receiving end of a queue.
type EndView struct {
	PIDs      []int `json:"pids"`       // processes that hold it
	InTransit int   `json:"in_transit"` // messages that hold it
	Gone      bool  `json:"gone"`       // no process and no message holds it, for ever
	Waiting   []int `json:"waiting"`    // processes that wait for a message, or for room
	DeadPID   int   `json:"dead_pid,omitempty"`
}

// queueNow reads the ring in block i. w is the state word that the caller has read. queueNow
// returns false if the block is not a ring, or if it changed meanwhile.
func (d *Domain) queueNow(i uint32, b *block, w stateWord) (q QueueView, ok bool) {
	r := d.ringNow(b)
	if r == nil || r.finished(ringBoard) {
		return q, false
	}
	head, tail, flags := r.hdr.head.Load(), r.hdr.tail.Load(), r.hdr.flags.Load()
	q = QueueView{
		Block: makeHandle(i, w.generation()).String(), Label: labelNow(r.hdr), Capacity: int(r.limit),
		Depth: int(min(max(int64(tail-head), 0), int64(r.limit))), Puts: tail, Gets: head,
		Bytes: int64(b.committed.Load()), Latest: r.news, Finished: flags&ringFinished != 0,
		Senders:   d.endNow(Handle(r.hdr.senders.Load()), objectSenders, &r.hdr.notFull),
		Receivers: d.endNow(Handle(r.hdr.receivers.Load()), objectReceivers, &r.hdr.notEmpty),
	}
	q.Senders.Gone = flags&ringNoSenders != 0
	q.Receivers.Gone = flags&ringNoReceivers != 0
	q.Senders.DeadPID = lockWord(r.hdr.dead[0].Load()).pid()
	q.Receivers.DeadPID = lockWord(r.hdr.dead[1].Load()).pid()
	if r.news {
		q.News = r.newsNow()
	}
	return q, w.same(b.w.Load())
}

// newsNow returns the body of the newest message. It returns nil if there is none, if the message
// is long or has blocks, or if it was replaced meanwhile. It takes no reference.
func (r *Ring) newsNow() []byte {
	_, s, w := r.newest()
	if s == nil {
		return nil
	}
	meta := s.meta.Load()
	body, err := s.text(nil)
	if err != nil || meta&metaSpill != 0 || meta>>8&0xff != 0 || s.word.Load() != w {
		return nil
	}
	return body
}

// ringNow returns a view of the ring in block b, or nil if b has no valid ring. This process need
// not hold the block.
func (d *Domain) ringNow(b *block) *Ring {
	p, ok := d.bytesNow(b)
	if !ok || len(p) < ringHead {
		return nil
	}
	_, most, ok := d.extent(b.ext.Load())
	if !ok {
		return nil
	}
	r, err := d.ringIn(b, (*ring)(unsafe.Pointer(&p[0])), most)
	if err != nil {
		return nil
	}
	return r
}

// endNow reads the token of a ring's end. waiting is the ring's bitmap of processes that wait at
// this end.
func (d *Domain) endNow(token Handle, kind objectKind, waiting *[ownWords]Word) EndView {
	v := EndView{PIDs: []int{}, Waiting: d.pidsIn(waiting)}
	if !d.allocated(token) {
		return v
	}
	b := &d.blocks[token.index()]
	if extKind(b.ext.Load()) != kind {
		return v
	}
	pids, n := d.pidsIn(&b.own), int(b.w.Load().transit())
	if d.allocated(token) {
		v.PIDs, v.InTransit = pids, n
	}
	return v
}

// labelNow is like the method label, for a ring in a block that may have been reused meanwhile. It
// is exempt from the race detector, because another process may write the text at the same time.
//
//go:norace
func labelNow(h *ring) string {
	text := h.text
	before, _, _ := bytes.Cut(text[:], []byte{0})
	return strings.ToValidUTF8(string(before), "")
}

// boundNow reads the board. It returns the names of the bound blocks by block index, and the bound
// values by name.
func (d *Domain) boundNow() (map[uint32][]string, map[string]Bound) {
	names, bound := map[uint32][]string{}, map[string]Bound{}
	h := Handle(d.hdr.names.Load())
	if !d.allocated(h) {
		return names, bound
	}
	b := &d.blocks[h.index()]
	r := d.ringNow(b)
	if r == nil || !r.finished(ringBoard) {
		return names, bound
	}
	r.each(func(s *slot, w slotWord) {
		if w.state() != slotFull {
			return
		}
		label, err := s.label(nil)
		blocks := d.carried(s, w)
		if err != nil || s.word.Load() != w || !d.allocated(h) {
			return
		}
		name := string(label[1 : 1+label[0]])
		v := Bound{Blocks: []string{}}
		for _, c := range blocks {
			if c != h { // every message of the board also carries the board itself
				v.Blocks = append(v.Blocks, c.String())
				names[c.index()] = append(names[c.index()], name)
			}
		}
		bound[name] = v
	})
	for _, all := range names {
		slices.Sort(all)
	}
	return names, bound
}

// firstQueues sorts the queues, those with waiters first and then by depth. It returns at most
// [maxObserved] of them, and the number left out.
func firstQueues(all []QueueView) ([]QueueView, int) {
	waiting := func(q QueueView) int { return len(q.Senders.Waiting) + len(q.Receivers.Waiting) }
	slices.SortStableFunc(all, func(a, b QueueView) int {
		return cmp.Or(cmp.Compare(min(waiting(b), 1), min(waiting(a), 1)), cmp.Compare(b.Depth, a.Depth))
	})
	n := min(len(all), maxObserved)
	return all[:n], len(all) - n
}
