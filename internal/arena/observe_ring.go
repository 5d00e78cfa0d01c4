package arena

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unsafe"
)

// A QueueView is a ring: a queue, a side of a pipe, or a Latest.
type QueueView struct {
	Block     string   `json:"block"`
	Names     []string `json:"names,omitempty"`
	Label     string   `json:"label"` // what the messages are
	Capacity  int      `json:"capacity"`
	Depth     int      `json:"depth"`
	Puts      uint64   `json:"puts"` // since it was made; what puts lost to a death counts as well
	Gets      uint64   `json:"gets"`
	Bytes     int64    `json:"bytes"`          // of its slots
	Latest    bool     `json:"latest"`         // messages stay, and all read the newest
	News      []byte   `json:"news,omitempty"` // body of a Latest's newest message, if it is short and has no blocks
	Finished  bool     `json:"finished"`       // no more puts
	Senders   EndView  `json:"senders"`
	Receivers EndView  `json:"receivers"`
}

// An EndView is the sending or the receiving end of a queue.
type EndView struct {
	PIDs      []int `json:"pids"`       // that hold it
	InTransit int   `json:"in_transit"` // messages that hold it
	Gone      bool  `json:"gone"`       // nobody holds it, for ever
	Waiting   []int `json:"waiting"`    // processes that wait for a message, or for room
	DeadPID   int   `json:"dead_pid,omitempty"`
}

// queueNow reads the ring in a block whose word was w. It reports false if that is none, or not
// yet, or not any more.
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

// newsNow returns the body of the newest message, nil where there is none that is short and has no
// blocks, or where a newer one has taken its place meanwhile. It takes no reference.
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

// ringNow returns a view of the ring in a block that this process may not hold, or nil.
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

// endNow reads the token of an end.
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

// labelNow is label of a ring whose block may be another one's by now.
//
//go:norace
func labelNow(h *ring) string {
	text := h.text
	before, _, _ := bytes.Cut(text[:], []byte{0})
	return strings.ToValidUTF8(string(before), "")
}

// boundNow returns the names of the blocks that are bound, by their index, and the blocks by their
// names.
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
			if c != h { // each name holds the board
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

// firstQueues returns those that an observer wants most, and how many it leaves out.
func firstQueues(all []QueueView) ([]QueueView, int) {
	waiting := func(q QueueView) int { return len(q.Senders.Waiting) + len(q.Receivers.Waiting) }
	slices.SortStableFunc(all, func(a, b QueueView) int {
		return cmp.Or(cmp.Compare(min(waiting(b), 1), min(waiting(a), 1)), cmp.Compare(b.Depth, a.Depth))
	})
	n := min(len(all), maxObserved)
	return all[:n], len(all) - n
}
