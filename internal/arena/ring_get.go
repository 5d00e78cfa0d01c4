package arena

import (
	"context"
	"errors"
	"slices"
)

// A Message is what a get returns. It may be used again for the next get, after Done.
type Message struct {
	// Body is valid until Done.
	Body []byte
	// Blocks are held by this process once each; the receiver of the message releases them.
	Blocks []Handle

	d      *Domain
	spill  Handle
	body   [slotBody]byte
	table  [slotBlocks]Handle
	order  []uint32
	orders [slotBlocks + 1]uint32
	sender uint32 // lane, and the number of its put
	opseq  uint64
}

// Done lets go of the message's body, not of its blocks.
func (m *Message) Done() {
	m.Body = nil
	if m.spill != 0 {
		m.d.Release(m.spill)
		m.spill = 0
	}
}

// Discard is Done that also releases the blocks.
func (m *Message) Discard() {
	m.Done()
	for _, h := range m.Blocks {
		m.d.Release(h)
	}
	m.Blocks = nil
}

// TryGet takes the next message, or returns ErrEmpty, or ErrFinished if the ring is empty and
// nobody will put any more. ErrCorrupt means that the message was taken out of the ring and cannot
// be read. A message that was put before the call is found, also behind one that is being put.
// Where another process is stopped in the middle of the put of the next message, TryGet waits for a
// second, and so it does where 16 gets of this process wait for stopped processes already and this
// one has to as well. Then the error is context.DeadlineExceeded.
func (r *Ring) TryGet(m *Message) error {
	err := r.tryGet(briefly, m)
	if err == errPutting {
		return r.awaitPut(err, func(ctx context.Context) error { return r.tryGet(ctx, m) })
	}
	return err
}

// tryGet is TryGet that waits for other lanes' operations on blocks until ctx ends. It returns
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

// get is in docs/memory.md: claim, copy, take a reference of each block before its count goes down,
// give the slot back.
func (r *Ring) get(l *lane, m *Message) error {
	s, lap, err := r.next(l, slotReading)
	if err != nil {
		return err
	}
	return r.take(l, m, s, lap)
}

// mostUnfinished is how many gets a process leaves to goroutines before the next one looks whether
// it could end by itself. Each keeps a lane.
const mostUnfinished = lanesPerSeat / 4

// obstacle returns inTheWay where another lane is in the middle of an operation on a block of the
// next message.
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

// take ends a get whose slot is READING.
//
// A reaper relies on the order (docs/memory.md, "Operations"): own bit first, then t, then
// the slot, then the stamps. As long as the slot is READING its reader can be finished by another;
// from EMPTY on only stamps are left, and the reaper clears those (strayGets).
//
// From READING on there is no way back. So where another lane's stamp is in the way for more than a
// moment, the caller has its message all the same, and a goroutine ends the get.
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

// endTake gives the slot back, and then the blocks of its message.
func (r *Ring) endTake(m *Message, s *slot, lap uint64) {
	s.leave(makeSlotWord(lap+1, slotEmpty, 0), m.order)
	for _, i := range m.order {
		r.d.unstamp(&r.d.blocks[i])
	}
}

// lose ends the get of a message that cannot be read.
func (r *Ring) lose(l *lane, m *Message, s *slot, lap uint64, taken int) {
	s.word.Store(makeSlotWord(lap+1, slotEmpty, 0))
	for _, i := range m.order[:taken] {
		r.d.unstamp(&r.d.blocks[i])
		l.release(i)
	}
}

// takeLater gives the message to the caller and has a goroutine end the get, in the same lane. Each
// of the two holds each block. The goroutine holds the ring as well, in whose slot it is.
func (r *Ring) takeLater(l *lane, m *Message, s *slot, lap uint64, taken int) {
	rest := &Message{d: r.d, sender: m.sender, opseq: m.opseq, order: slices.Clone(m.order)}
	for _, i := range m.order[taken:] {
		r.d.acquire(i) // for the caller: receive has taken none where it did not succeed
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

// takeRest waits for the obstacle of a get and ends the get, unless the domain is closed before.
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

// Lost reports whether the error of a get is of one message alone, which was taken and cannot be
// read. After any other ErrCorrupt the next get may fail in the same way.
func Lost(err error) bool { return err == ErrCorrupt }

// next claims the oldest message, as READING or as LEASED. It looks at the flags before it
// looks at the ring once more, so that a message put before the last sender went is not
// overlooked.
//
// Invariant (docs/memory.md, "Garbage"): while the head is at a ticket, the ticket's slot is in its
// lap or in the next one. Where the slot is farther on, it or the head is garbage: to help the head
// on from slot to slot would take for ever.
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

// read copies the message out of its slot, reading each field once, and checks it.
func (m *Message) read(s *slot) error {
	return m.readBy(s, tOne)
}

// readAgain is read in the place of a dead reader, which may have taken its references already.
func (m *Message) readAgain(s *slot) error {
	return m.readBy(s, 0)
}

// readBy checks that every block is there and that at least least messages, as a field of its state
// word, hold it.
//
// Another process wrote the message, so nothing of it is believed: an index beyond the
// headers, a stale handle, a block that no message holds or one block twice would lead this process
// out of its memory, or let it wait for its own stamp.
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
		return nil // most messages of plain values
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

// sort puts the message's blocks into the order in which they are locked.
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

// hasTwice reports whether two neighbours are the same.
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

// inTransit reports whether h is a block that at least so many messages hold.
func (d *Domain) inTransit(h Handle, least uint64) bool {
	i := h.index()
	if !h.wellFormed() || uint64(i) >= d.hdr.blocks.Load() {
		return false
	}
	w := d.blocks[i].w.Load()
	return w&allocBit != 0 && w.generation() == h.gen() && w&tMask >= stateWord(least)
}

// allocated reports whether h is a block that is not free.
func (d *Domain) allocated(h Handle) bool { return d.inTransit(h, 0) }

// receive turns the message's reference of a block into one of this process. A sender may have
// published the message and not yet cleared its stamp. receive does not wait for it: the new stamp
// takes the place of the sender's, since the slot that is being read is the evidence for which that
// stamp stood. This holds for t = 1 only: as long as the message is unread, another put of the same
// lane would make t 2, so the word cannot have come back to the value that was seen.
//
// Invariant (docs/memory.md, "Operations"): acquire comes before t goes down. A block therefore is
// held by the message or by this participant at every moment, and no try-free finds it held by
// neither.
//
// Where the word is garbage the reference cannot be taken: from READING on there is no way back,
// and the message is lost. Where another lane's stamp is in the way for more than a moment it
// returns inTheWay, and has taken nothing.
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

// sentBy reports whether the state word w carries the stamp of the put of this very message, and of
// no other message.
func (m *Message) sentBy(d *Domain, w stateWord) bool {
	return w&(tMask|xoMask) == tOne|stamp(m.sender, kindPut) && d.recs[m.sender].opseq.Load() == m.opseq
}
