package arena

import (
	"context"
	"errors"
	"slices"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Message is the result of a get. The receiver must call [Message.Done] or [Message.Discard];
// it may then be reused for another get. Its methods must not be called at the same time.
type Message struct {
	// Body is the body of the message. It must not be used after Done.
	Body []byte
	// Blocks are the message's blocks, each held once by this process. The receiver of the message
	// must release them.
	Blocks []Handle

	d      *Domain
	spill  Handle
	body   [layout.SlotBody]byte
	table  [layout.SlotBlocks]Handle
	order  []uint32
	orders [layout.SlotBlocks + 1]uint32
	sender uint32 // lane of the put, which opseq numbers
	opseq  uint64
}

// Done releases the message's body, but not its blocks: the receiver still holds each of them
// once.
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
		if err := r.d.awaitObstacle(ctx, i); err != nil {
			return err
		}
	}
}

func (r *Ring) getOnce(ctx context.Context, m *Message) error {
	l, err := r.d.acquireLaneFor(ctx)
	if err != nil {
		return err
	}
	if r.d.unfinishedGets.Load() >= mostUnfinished {
		err = r.findObstacle()
	}
	if err == nil {
		err = r.getMessage(l, m)
	}
	if err == nil || errors.Is(err, ErrCorrupt) {
		r.notFull.WakeParticipant()
	}
	l.unlock()
	return err
}

// getMessage implements the get of docs/memory.md: claim the slot, copy the message, take a
// reference to each block before its transit count decreases, give the slot back. It returns the
// errors of [Ring.claimOldest] and [Ring.completeGet].
func (r *Ring) getMessage(l *lane, m *Message) error {
	s, lap, err := r.claimOldest(l, word.SlotReading)
	if err != nil {
		return err
	}
	return r.completeGet(l, m, s, lap)
}

// mostUnfinished is the number of gets that a process leaves to goroutines. Above it, a get first
// checks that it can complete by itself, because each unfinished get occupies a lane.
const mostUnfinished = layout.LanesPerSeat / 4

// findObstacle returns inTheWay if another lane is in the middle of an operation on a block of
// the next message, and otherwise nil.
func (r *Ring) findObstacle() error {
	tk := r.hdr.Head.Load()
	if !r.isBacked(tk) {
		return nil
	}
	s := r.slot(tk)
	w := s.Word.Load()
	if w.Lap() != r.lap(tk) || w.State() != word.SlotFull {
		return nil
	}
	m := &Message{sender: uint32(s.Meta.Load()>>32) & word.LaneMask, opseq: s.Opseq.Load()}
	for _, h := range r.d.carriedBlocks(s, w) {
		if w := r.d.mem.Blocks[h.Block()].State.Load(); w.IsStamped() && !m.isSentBy(r.d, w) {
			return inTheWay(h.Block())
		}
	}
	return nil
}

// completeGet completes a get with slot s, which this lane has made READING in the given lap. It
// returns nil if m has the message, and [ErrCorrupt] if the message is lost.
//
// A reaper relies on the order (docs/memory.md, "Operations"): the own bit must be set first,
// then t, then the slot, then the stamps. While the slot is READING, another lane can complete
// the get for its reader. After the slot is EMPTY only stamps remain, and the reaper clears them
// (clearStrayGets).
//
// A get cannot be undone once the slot is READING. So if another lane's stamp is in the way for
// more than a moment, the caller gets its message anyway, and a goroutine completes the get. A
// lane that finalises an object (lane.aside) waits instead, and returns [ErrClosed] if the
// domain is closed meanwhile.
func (r *Ring) completeGet(l *lane, m *Message, s *layout.Slot, lap uint64) error {
	m.d = r.d
	err, taken := m.readSlot(s), 0
	for err == nil && taken < len(m.order) {
		if err = l.receiveBlock(m.order[taken], m); err == nil {
			taken++
		}
	}
	switch {
	case err == nil:
		r.endGet(m, s, lap)
		return nil
	case errors.Is(err, ErrCorrupt):
		r.loseMessage(l, m, s, lap, taken)
		return err
	case l.aside:
		return r.awaitRestOfGet(l, m, s, lap, taken)
	}
	r.completeGetLater(l, m, s, lap, taken)
	return nil
}

// endGet completes a get: it marks the slot as empty and then clears the stamps of the message's
// blocks. This lane must be reading the slot in the given lap, and must have acquired all blocks of
// m.
func (r *Ring) endGet(m *Message, s *layout.Slot, lap uint64) {
	s.StoreEndWord(word.MakeSlot(lap+1, word.SlotEmpty, 0), m.order)
	for _, i := range m.order {
		r.d.unstampBlock(&r.d.mem.Blocks[i])
	}
}

// loseMessage completes the get of a message that cannot be read: it empties the slot and
// releases the first taken blocks of m, which this lane has received.
func (r *Ring) loseMessage(l *lane, m *Message, s *layout.Slot, lap uint64, taken int) {
	s.Word.Store(word.MakeSlot(lap+1, word.SlotEmpty, 0))
	for _, i := range m.order[:taken] {
		r.d.unstampBlock(&r.d.mem.Blocks[i])
		l.releaseBlock(i)
	}
}

// completeGetLater gives the message to the caller and completes the get in a goroutine, in the
// same lane. Each of the two holds each block. The goroutine also holds the ring, because it still
// uses one of the ring's slots.
func (r *Ring) completeGetLater(l *lane, m *Message, s *layout.Slot, lap uint64, taken int) {
	rest := &Message{d: r.d, sender: m.sender, opseq: m.opseq, order: slices.Clone(m.order)}
	for _, i := range m.order[taken:] {
		r.d.addRef(i) // for the caller: a receive that failed has taken no reference
	}
	for _, i := range m.order[:taken] {
		r.d.addRef(i)
	}
	r.d.addRef(r.index())
	r.d.unfinishedGets.Add(1)
	l.lendLane(func() {
		defer r.d.unfinishedGets.Add(-1)
		err := r.awaitRestOfGet(l, rest, s, lap, taken)
		if errors.Is(err, ErrClosed) {
			l.abandonOperation()
			return
		}
		if err == nil {
			for _, i := range rest.order {
				l.releaseBlock(i)
			}
		}
		r.notFull.WakeParticipant()
		l.releaseBlock(r.index())
		l.dropUser()
	})
}

// awaitRestOfGet waits until other lanes' stamps clear and completes the get. It returns
// [ErrClosed] if the domain is closed before.
func (r *Ring) awaitRestOfGet(l *lane, m *Message, s *layout.Slot, lap uint64, taken int) error {
	for ; taken < len(m.order); taken++ {
		b := &r.d.mem.Blocks[m.order[taken]]
		err := error(inTheWay(0))
		for err != nil {
			if err = awaitWord(r.d.lingering, r.d, l, &b.State, isUnstamped, word.WaitBit); err == nil {
				err = l.receiveBlock(m.order[taken], m)
			}
			if errors.Is(err, ErrCorrupt) {
				r.loseMessage(l, m, s, lap, taken)
				return err
			}
			if r.d.lingering.Err() != nil {
				return ErrClosed
			}
		}
	}
	r.endGet(m, s, lap)
	return nil
}

// Lost reports whether the error of a get concerns only one message, which was taken and cannot be
// read. After any other [ErrCorrupt] the next get may fail in the same way.
func Lost(err error) bool { return err == ErrCorrupt }

// claimOldest claims the oldest message, as word.SlotReading or word.SlotLeased, and returns its
// slot and lap. It returns [ErrEmpty] if there is no message, errPutting if the next one is
// still being put, the error of [Ring.finishedError] if no message will follow, and
// [ErrCorrupt]. It must read the flags before it looks at the ring a last time, so that it does
// not miss a message put before the last sender left.
//
// Invariant (docs/memory.md, "Garbage"): while the head is at a ticket, the ticket's slot is in
// the ticket's lap or in the next one. If the slot is farther ahead, the slot or the head is
// corrupt, and claimOldest must not help the head forward from slot to slot, which could take
// for ever.
func (r *Ring) claimOldest(l *lane, claim uint64) (*layout.Slot, uint64, error) {
	for flags := uint64(0); ; {
		if r.hasReturns() {
			if s, lap := r.nextReturned(l, claim); s != nil {
				return s, lap, nil
			}
		}
		tk := r.hdr.Head.Load()
		var w word.Slot
		lap := r.lap(tk)
		s := r.slot(tk)
		if r.isBacked(tk) {
			w = s.Word.Load()
		}
		switch st := w.State(); {
		case w.Lap() == lap && st == word.SlotFull:
			if s.Word.CAS(w, word.MakeSlot(lap, claim, l.id)) {
				r.hdr.Head.CAS(tk, tk+1)
				return s, lap, nil
			}
		case w.Lap() == lap && st == word.SlotSkip:
			if s.Word.CAS(w, word.MakeSlot(lap+1, word.SlotEmpty, 0)) {
				r.d.park.WakeOne(&r.hdr.NotFull, r.d.seat) // a hole is room as well
			}
			r.hdr.Head.CAS(tk, tk+1)
		case w.IsAfter(lap + 1):
			if r.hdr.Head.Load() == tk {
				return nil, 0, reportCorruption("the word of a ring's slot", uint64(w))
			}
		case w.IsAfter(lap), w.Lap() == lap && (st == word.SlotReading || st == word.SlotLeased):
			r.advancePast(tk, w)
		case r.hdr.Head.Load() != tk:
		case w.Lap() == lap && st == word.SlotWriting:
			return nil, 0, errPutting
		case flags != 0 && r.hasOutstanding():
			return nil, 0, ErrEmpty // a lease may still end without an acknowledgement
		case flags != 0:
			return nil, 0, r.finishedError(layout.RingNoSenders)
		default:
			flags = r.hdr.Flags.Load() & (layout.RingFinished | layout.RingNoSenders)
			if flags == 0 {
				return nil, 0, ErrEmpty
			}
		}
	}
}

// readSlot copies the message out of its slot, reading each field once, and validates it. It
// returns [ErrCorrupt] if the message is invalid.
func (m *Message) readSlot(s *layout.Slot) error {
	return m.readChecked(s, word.TOne)
}

// rereadSlot is readSlot on behalf of a dead reader, which may have taken its references
// already.
func (m *Message) rereadSlot(s *layout.Slot) error {
	return m.readChecked(s, 0)
}

// readChecked copies the message and checks that each of its blocks exists and is held by messages,
// at least as many as in least, which is a transit field of a state word.
//
// Another process wrote the message, so it must not be trusted: with an index beyond the headers, a
// stale handle, a block that no message holds, or a duplicate block, this process would access
// memory outside the domain or wait for its own stamp.
func (m *Message) readChecked(s *layout.Slot, least uint64) error {
	meta := s.Meta.Load()
	n, blocks := int(meta>>16&0xffff), int(meta>>8&0xff)
	if n > layout.SlotBody || blocks > layout.SlotBlocks {
		return ErrCorrupt
	}
	m.sender, m.opseq = uint32(meta>>32)&word.LaneMask, s.Opseq.Load()
	m.Body = m.body[:copy(m.body[:n], s.Body[:n])]
	m.Blocks, m.order, m.spill = m.table[:blocks], m.orders[:0], 0
	if blocks == 0 && meta&layout.MetaSpill == 0 {
		return nil // the common case of plain values
	}
	for i := range m.Blocks {
		m.Blocks[i] = Handle(s.BlockWord(i).Load())
	}
	if meta&layout.MetaSpill != 0 {
		if err := m.readSpilled(blocks, least); err != nil {
			return err
		}
	}
	m.sortOrder()
	for _, h := range m.Blocks {
		if !m.d.mem.IsInTransit(h, least) {
			return ErrCorrupt
		}
	}
	if hasDuplicates(m.order) || m.spill != 0 && slices.Contains(m.Blocks, m.spill) {
		return ErrCorrupt // the get would wait for its own stamp
	}
	return nil
}

// sortOrder fills m.order with the indices of the message's blocks in the order in which they
// must be stamped: ascending, and the block of a spilled message last.
func (m *Message) sortOrder() {
	m.order = m.orders[:0]
	for _, h := range m.Blocks {
		m.order = append(m.order, h.Block())
	}
	if len(m.order) > 1 {
		slices.Sort(m.order)
	}
	if m.spill != 0 {
		m.order = append(m.order, m.spill.Block())
	}
}

// hasDuplicates reports whether two neighbours are equal.
func hasDuplicates(order []uint32) bool {
	for n := 1; n < len(order); n++ {
		if order[n] == order[n-1] {
			return true
		}
	}
	return false
}

func (m *Message) readSpilled(blocks int, least uint64) error {
	if blocks != 1 || !m.d.mem.IsInTransit(m.table[0], least) {
		return ErrCorrupt
	}
	m.spill = m.table[0]
	p, err := m.d.bytesOf(&m.d.mem.Blocks[m.spill.Block()])
	if err == nil {
		m.Blocks, m.Body, err = decodeSpill(p)
	}
	return err
}

// receiveBlock turns the message's reference to a block into a reference of this process: it
// decrements t, the transit count in the block's state word. If the sender has published the
// message and not yet cleared its stamp, receiveBlock does not wait: it replaces the sender's
// stamp, because the slot that is being read proves that the message was published. Only at t = 1
// may the sender's stamp be replaced. As long as the message is unread, another put by the same
// lane would make t 2, so the state word cannot have returned to the value that was read.
//
// Invariant (docs/memory.md, "Operations"): the block must be acquired before t decreases. So at
// every moment the message or this participant holds the block, and no try-free finds it without a
// holder.
//
// If t is 0, a process has overwritten the state word, and the error wraps [ErrCorrupt]. The
// message is then lost, because a get cannot be undone once the slot is READING. If another lane's
// stamp is in the way for more than a moment, receiveBlock returns inTheWay and has taken no
// reference.
func (l *lane) receiveBlock(index uint32, m *Message) error {
	l.d.addRef(index)
	b := &l.d.mem.Blocks[index]
	for {
		w := b.State.Load()
		if w.IsStamped() && !m.isSentBy(l.d, w) {
			if !pollUnstamped(b) {
				l.d.dropRef(index)
				return inTheWay(index)
			}
			continue
		}
		if w&word.TMask == 0 {
			return errors.Join(reportCorruption("the state of a block", uint64(w)), l.releaseBlock(index))
		}
		if b.State.CAS(w, w&^word.StampMask-word.TOne|word.MakeStamp(l.id, word.KindGet)) {
			return nil
		}
	}
}

// isSentBy reports whether the state word w has the stamp of the put of this message, and of no
// other message.
func (m *Message) isSentBy(d *Domain, w word.State) bool {
	return w&(word.TMask|word.StampMask) == word.TOne|word.MakeStamp(m.sender, word.KindPut) &&
		d.mem.Lanes[m.sender].Opseq.Load() == m.opseq
}
