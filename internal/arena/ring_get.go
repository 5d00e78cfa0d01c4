package arena

import (
	"context"
	"errors"
	"slices"
)

// A Message is the result of a get. It may be reused for another get after [Message.Done].
type Message struct {
	// Body is the body of the message. It must not be used after Done.
	Body []byte
	// Blocks are the message's blocks, each held once by this process. The receiver of the message
	// must release them.
	Blocks []Handle

	d      *Domain
	spill  Handle
	body   [slotBody]byte
	table  [slotBlocks]Handle
	order  []uint32
	orders [slotBlocks + 1]uint32
	sender uint32 // lane of the put, which opseq numbers
	opseq  uint64
}

// Done releases the message's body, but not its blocks.
func (m *Message) Done() {
	m.Body = nil
	if m.spill != 0 {
		m.d.Release(m.spill)
		m.spill = 0
	}
}

// Discard releases the message's body and blocks.
func (m *Message) Discard() {
	m.Done()
	for _, h := range m.Blocks {
		m.d.Release(h)
	}
	m.Blocks = nil
}

// TryGet takes the next message. It returns [ErrEmpty] if there is none, or [ErrFinished] if the
// ring is empty and no message can be put any more. [ErrCorrupt] means that a message was taken out
// of the ring and cannot be read. A message that was put before the call is found, even behind one
// that is being put.
//
// If another process is stopped in the middle of the put of the next message, TryGet waits for up
// to one second and then returns [context.DeadlineExceeded]. It does the same if 16 gets of this
// process already wait for stopped processes and this get would have to wait as well.
func (r *Ring) TryGet(m *Message) error {
	err := r.tryGet(briefly, m)
	if err == errPutting {
		return r.awaitPut(err, func(ctx context.Context) error { return r.tryGet(ctx, m) })
	}
	return err
}

// tryGet is TryGet, but waits for other lanes' operations on blocks until ctx ends. It returns
// errPutting if another lane is putting the next message.
func (r *Ring) tryGet(ctx context.Context, m *Message) error {
	for {
		err := r.getOnce(ctx, m)
		i, ok := err.(inTheWay)
		if !ok {
			return err
		}
		if err := r.d.await(ctx, i); err != nil {
			return err
		}
	}
}

func (r *Ring) getOnce(ctx context.Context, m *Message) error {
	l, err := r.d.enterFor(ctx)
	if err != nil {
		return err
	}
	if r.d.unfinishedGets.Load() >= mostUnfinished {
		err = r.obstacle()
	}
	if err == nil {
		err = r.get(l, m)
	}
	if err == nil || errors.Is(err, ErrCorrupt) {
		r.notFull.rewake()
	}
	l.unlock()
	return err
}

// get implements the get of docs/memory.md: claim the slot, copy the message, take a reference to
// each block before its transit count decreases, give the slot back.
func (r *Ring) get(l *lane, m *Message) error {
	s, lap, err := r.next(l, slotReading)
	if err != nil {
		return err
	}
	return r.take(l, m, s, lap)
}

// mostUnfinished is the number of gets that a process leaves to goroutines. Above it, a get first
// checks that it can complete by itself, because each unfinished get occupies a lane.
const mostUnfinished = lanesPerSeat / 4

// obstacle returns inTheWay if another lane is in the middle of an operation on a block of the next
// message.
func (r *Ring) obstacle() error {
	tk := r.hdr.head.Load()
	if !r.backed(tk) {
		return nil
	}
	s := r.slot(tk)
	w := s.word.Load()
	if w.lap() != r.lap(tk) || w.state() != slotFull {
		return nil
	}
	m := &Message{sender: uint32(s.meta.Load()>>32) & laneMask, opseq: s.opseq.Load()}
	for _, h := range r.d.carried(s, w) {
		if w := r.d.blocks[h.index()].w.Load(); w.stamped() && !m.sentBy(r.d, w) {
			return inTheWay(h.index())
		}
	}
	return nil
}

// take completes a get with a slot that is READING.
//
// A reaper relies on the order (docs/memory.md, "Operations"): the own bit must be set first, then
// t, then the slot, then the stamps. While the slot is READING, another lane can complete the get
// for its reader. After the slot is EMPTY only stamps remain, and the reaper clears them
// (strayGets).
//
// A get cannot be undone once the slot is READING. So if another lane's stamp is in the way for
// more than a moment, the caller gets its message anyway, and a goroutine completes the get.
func (r *Ring) take(l *lane, m *Message, s *slot, lap uint64) error {
	m.d = r.d
	err, taken := m.read(s), 0
	for err == nil && taken < len(m.order) {
		if err = l.receive(m.order[taken], m); err == nil {
			taken++
		}
	}
	switch {
	case err == nil:
		r.endTake(m, s, lap)
		return nil
	case errors.Is(err, ErrCorrupt):
		r.lose(l, m, s, lap, taken)
		return err
	case l.aside:
		return r.takeRest(l, m, s, lap, taken)
	}
	r.takeLater(l, m, s, lap, taken)
	return nil
}

// endTake empties the slot and then clears the stamps of the message's blocks.
func (r *Ring) endTake(m *Message, s *slot, lap uint64) {
	s.leave(makeSlotWord(lap+1, slotEmpty, 0), m.order)
	for _, i := range m.order {
		r.d.unstamp(&r.d.blocks[i])
	}
}

// lose completes the get of a message that cannot be read. It releases the blocks taken so far.
func (r *Ring) lose(l *lane, m *Message, s *slot, lap uint64, taken int) {
	s.word.Store(makeSlotWord(lap+1, slotEmpty, 0))
	for _, i := range m.order[:taken] {
		r.d.unstamp(&r.d.blocks[i])
		l.release(i)
	}
}

// takeLater gives the message to the caller and completes the get in a goroutine, in the same lane.
// Each of the two holds each block. The goroutine also holds the ring, because it still uses one of
// the ring's slots.
func (r *Ring) takeLater(l *lane, m *Message, s *slot, lap uint64, taken int) {
	rest := &Message{d: r.d, sender: m.sender, opseq: m.opseq, order: slices.Clone(m.order)}
	for _, i := range m.order[taken:] {
		r.d.acquire(i) // for the caller: a receive that failed has taken no reference
	}
	for _, i := range m.order[:taken] {
		r.d.acquire(i)
	}
	r.d.acquire(r.index())
	r.d.unfinishedGets.Add(1)
	l.lend(func() {
		defer r.d.unfinishedGets.Add(-1)
		err := r.takeRest(l, rest, s, lap, taken)
		if errors.Is(err, ErrClosed) {
			l.abandon()
			return
		}
		if err == nil {
			for _, i := range rest.order {
				l.release(i)
			}
		}
		r.notFull.rewake()
		l.release(r.index())
		l.leave()
	})
}

// takeRest waits until other lanes' stamps clear and completes the get. It returns [ErrClosed] if
// the domain is closed before.
func (r *Ring) takeRest(l *lane, m *Message, s *slot, lap uint64, taken int) error {
	for ; taken < len(m.order); taken++ {
		b := &r.d.blocks[m.order[taken]]
		err := error(inTheWay(0))
		for err != nil {
			if err = patience(r.d.lingering, r.d, l, &b.w, unstamped, waitBit); err == nil {
				err = l.receive(m.order[taken], m)
			}
			if errors.Is(err, ErrCorrupt) {
				r.lose(l, m, s, lap, taken)
				return err
			}
			if r.d.lingering.Err() != nil {
				return ErrClosed
			}
		}
	}
	r.endTake(m, s, lap)
	return nil
}

// Lost reports whether the error of a get concerns only one message, which was taken and cannot be
// read. After any other [ErrCorrupt] the next get may fail in the same way.
func Lost(err error) bool { return err == ErrCorrupt }

// next claims the oldest message, as READING or as LEASED. It must read the flags before it looks
// at the ring a last time, so that it does not miss a message put before the last sender left.
//
// Invariant (docs/memory.md, "Garbage"): while the head is at a ticket, the ticket's slot is in the
// ticket's lap or in the next one. If the slot is farther ahead, the slot or the head is corrupt,
// and next must not help the head forward from slot to slot, which could take for ever.
func (r *Ring) next(l *lane, claim uint64) (*slot, uint64, error) {
	for flags := uint64(0); ; {
		if r.hasReturns() {
			if s, lap := r.nextReturned(l, claim); s != nil {
				return s, lap, nil
			}
		}
		tk := r.hdr.head.Load()
		var w slotWord
		lap := r.lap(tk)
		s := r.slot(tk)
		if r.backed(tk) {
			w = s.word.Load()
		}
		switch st := w.state(); {
		case w.lap() == lap && st == slotFull:
			if s.word.CAS(w, makeSlotWord(lap, claim, l.id)) {
				r.hdr.head.CAS(tk, tk+1)
				return s, lap, nil
			}
		case w.lap() == lap && st == slotSkip:
			if s.word.CAS(w, makeSlotWord(lap+1, slotEmpty, 0)) {
				r.d.wakeOne(&r.hdr.notFull, r.d.seat) // a hole is room as well
			}
			r.hdr.head.CAS(tk, tk+1)
		case w.past(lap + 1):
			if r.hdr.head.Load() == tk {
				return nil, 0, corrupt("the word of a ring's slot", uint64(w))
			}
		case w.past(lap), w.lap() == lap && (st == slotReading || st == slotLeased):
			r.pass(tk, w)
		case r.hdr.head.Load() != tk:
		case w.lap() == lap && st == slotWriting:
			return nil, 0, errPutting
		case flags != 0 && r.outstanding():
			return nil, 0, ErrEmpty // a lease may still end without an acknowledgement
		case flags != 0:
			return nil, 0, r.lonely(ringNoSenders)
		default:
			flags = r.hdr.flags.Load() & (ringFinished | ringNoSenders)
			if flags == 0 {
				return nil, 0, ErrEmpty
			}
		}
	}
}

// read copies the message out of its slot, reading each field once, and validates it. It returns
// [ErrCorrupt] if the message is invalid.
func (m *Message) read(s *slot) error {
	return m.readBy(s, tOne)
}

// readAgain is read on behalf of a dead reader, which may have taken its references already.
func (m *Message) readAgain(s *slot) error {
	return m.readBy(s, 0)
}

// readBy copies the message and checks that each of its blocks exists and is held by messages, at
// least as many as in least, which is a transit field of a state word.
//
// Another process wrote the message, so it must not be trusted: with an index beyond the headers, a
// stale handle, a block that no message holds, or a duplicate block, this process would access
// memory outside the domain or wait for its own stamp.
func (m *Message) readBy(s *slot, least uint64) error {
	meta := s.meta.Load()
	n, blocks := int(meta>>16&0xffff), int(meta>>8&0xff)
	if n > slotBody || blocks > slotBlocks {
		return ErrCorrupt
	}
	m.sender, m.opseq = uint32(meta>>32)&laneMask, s.opseq.Load()
	m.Body = m.body[:copy(m.body[:n], s.body[:n])]
	m.Blocks, m.order, m.spill = m.table[:blocks], m.orders[:0], 0
	if blocks == 0 && meta&metaSpill == 0 {
		return nil // the common case of plain values
	}
	for i := range m.Blocks {
		m.Blocks[i] = Handle(s.block(i).Load())
	}
	if meta&metaSpill != 0 {
		if err := m.readSpilled(blocks, least); err != nil {
			return err
		}
	}
	m.sort()
	for _, h := range m.Blocks {
		if !m.d.inTransit(h, least) {
			return ErrCorrupt
		}
	}
	if hasTwice(m.order) || m.spill != 0 && slices.Contains(m.Blocks, m.spill) {
		return ErrCorrupt // the get would wait for its own stamp
	}
	return nil
}

// sort fills m.order with the message's blocks in lock order.
func (m *Message) sort() {
	m.order = m.orders[:0]
	for _, h := range m.Blocks {
		m.order = append(m.order, h.index())
	}
	if len(m.order) > 1 {
		slices.Sort(m.order)
	}
	if m.spill != 0 {
		m.order = append(m.order, m.spill.index())
	}
}

// hasTwice reports whether two neighbours are equal.
func hasTwice(order []uint32) bool {
	for n := 1; n < len(order); n++ {
		if order[n] == order[n-1] {
			return true
		}
	}
	return false
}

func (m *Message) readSpilled(blocks int, least uint64) error {
	if blocks != 1 || !m.d.inTransit(m.table[0], least) {
		return ErrCorrupt
	}
	m.spill = m.table[0]
	p, err := m.d.bytesOf(&m.d.blocks[m.spill.index()])
	if err == nil {
		m.Blocks, m.Body, err = unspill(p)
	}
	return err
}

// inTransit reports whether h is a block held by messages, at least as many as in least, which is a
// transit field of a state word.
func (d *Domain) inTransit(h Handle, least uint64) bool {
	i := h.index()
	if !h.wellFormed() || uint64(i) >= d.hdr.blocks.Load() {
		return false
	}
	w := d.blocks[i].w.Load()
	return w&allocBit != 0 && w.generation() == h.gen() && w&tMask >= stateWord(least)
}

// allocated reports whether h is an allocated block.
func (d *Domain) allocated(h Handle) bool { return d.inTransit(h, 0) }

// receive turns the message's reference to a block into a reference of this process. If the sender
// has published the message and not yet cleared its stamp, receive does not wait: it replaces the
// sender's stamp, because the slot that is being read proves that the message was published. This
// must only be done at t = 1. As long as the message is unread, another put by the same lane would
// make t 2, so the word cannot have returned to the value that was read.
//
// Invariant (docs/memory.md, "Operations"): the block must be acquired before t decreases. So at
// every moment the message or this participant holds the block, and no try-free finds it without a
// holder.
//
// If the word is corrupt, the reference cannot be taken and the message is lost, because a get
// cannot be undone once the slot is READING. If another lane's stamp is in the way for more than a
// moment, receive returns inTheWay and has taken no reference.
func (l *lane) receive(index uint32, m *Message) error {
	l.d.acquire(index)
	b := &l.d.blocks[index]
	for {
		w := b.w.Load()
		if w.stamped() && !m.sentBy(l.d, w) {
			if !b.idle() {
				l.d.drop(index)
				return inTheWay(index)
			}
			continue
		}
		if w&tMask == 0 {
			return errors.Join(corrupt("the state of a block", uint64(w)), l.release(index))
		}
		if b.w.CAS(w, w&^xoMask-tOne|stamp(l.id, kindGet)) {
			return nil
		}
	}
}

// sentBy reports whether the state word w has the stamp of the put of this message, and of no other
// message.
func (m *Message) sentBy(d *Domain, w stateWord) bool {
	return w&(tMask|xoMask) == tOne|stamp(m.sender, kindPut) && d.recs[m.sender].opseq.Load() == m.opseq
}
