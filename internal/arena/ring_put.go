package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// TryPut puts a message of body and blocks, or returns ErrFull, ErrFinished, ErrTooManyInTransit or
// ErrNoSpace. The caller holds each block; they are distinct. With move, the caller's reference of
// each block goes with the message when TryPut succeeds. Where another process is stopped in the
// middle of a put or get of a block, or of a get from the slot, TryPut waits for a second. Then the
// error is context.DeadlineExceeded.
func (r *Ring) TryPut(body []byte, blocks []Handle, move bool) error {
	err := r.tryPut(briefly, body, blocks, move)
	for err == errGetting {
		if disabled("unfinished get") {
			return ErrFull
		}
		waited := r.awaitOther(&r.notFull, r.writable)
		if err = r.tryPut(briefly, body, blocks, move); err == errGetting && waited != nil {
			return waited
		}
	}
	return err
}

// tryPut is TryPut that waits for other lanes' operations on the blocks until ctx ends. It returns
// errGetting if another lane is reading the slot.
func (r *Ring) tryPut(ctx context.Context, body []byte, blocks []Handle, move bool) error {
	if r.finished(ringFinished | ringNoReceivers) {
		return r.lonely(ringNoReceivers)
	}
	for _, h := range blocks {
		if _, err := r.d.check(h); err != nil {
			return fmt.Errorf("put %v: %w", h, err)
		}
	}
	if len(body) > slotBody || len(blocks) > slotBlocks {
		if err := r.room(); err != nil {
			return err // before the message is copied
		}
		return r.putSpilled(ctx, body, blocks, move)
	}
	var p parcel // field by field: a literal is copied, and the copy waits for the fields' stores
	p.body, p.table, p.blocks = body, blocks, blocks
	if move {
		p.moved = blocks
	}
	return r.put(ctx, &p)
}

// A parcel is a message on its way into a slot.
type parcel struct {
	name   string // of a message for a board
	body   []byte
	table  []Handle // the handles that stand in the slot
	blocks []Handle // every block that the message holds
	moved  []Handle // those of them whose reference goes with it
	flags  uint64
}

// put is in docs/memory.md: stamp, claim, write, publish, clear the stamps. Where another lane's
// stamp is in the way for more than a moment, it takes its own back and waits without a lane.
func (r *Ring) put(ctx context.Context, p *parcel) error {
	var few [slotBlocks]uint32
	order := lockOrder(few[:0], p.blocks)
	for {
		err := r.putOnce(ctx, p, order)
		i, ok := err.(inTheWay)
		if !ok {
			return err
		}
		if err := r.d.await(ctx, i); err != nil {
			return err
		}
	}
}

func (r *Ring) putOnce(ctx context.Context, p *parcel, order []uint32) error {
	l, err := r.d.enterFor(ctx)
	if err != nil {
		return err
	}
	l.count()
	err = r.deliver(ctx, l, p, order)
	if err == nil && r.news {
		r.d.wakeBits(&r.hdr.notEmpty)
	} else if err == nil {
		r.notEmpty.rewake() // in the lane, so that Close waits for it: the ring may be gone after that
	}
	deserted := (err == nil || errors.Is(err, ErrFinished)) && r.deserted()
	if deserted {
		r.d.acquire(r.index()) // as long as our own end is there
	}
	if err == nil && r.among(p.moved) {
		l.release(r.index())
	}
	l.unlock()
	if deserted {
		r.d.drainAside(nil, r.index(), time.Duration(briefly))
	}
	if err != nil {
		err = r.d.explain(err)
	}
	return err
}

// count gives the put that begins the lane's next number.
func (l *lane) count() { l.rec.opseq.Set(l.rec.opseq.Load() + 1) }

// among reports whether the ring itself is one of the blocks.
func (r *Ring) among(blocks []Handle) bool {
	return slices.ContainsFunc(blocks, func(h Handle) bool { return h.index() == r.index() })
}

func (r *Ring) index() uint32 { return r.d.indexOf(r.b) }

// deliver keeps the order by which a reaper tells a message that was sent from one that was not
// (docs/memory.md, "Operations"): every block is stamped before a slot is claimed, and the slot is
// FULL before a stamp clears. So a dead sender's stamp stands beside a slot that names its put,
// and the message is sent, or beside none, and the reaper takes t back. Nothing is dropped
// before a slot is claimed: a put that is refused has nothing to restore.
func (r *Ring) deliver(ctx context.Context, l *lane, p *parcel, order []uint32) error {
	for {
		if err := l.send(order); err != nil {
			return err
		}
		s, lap, err := r.claimFor(l, p)
		if err == nil && r.deserted() { // a slot that a drain has emptied is no room
			s.word.Store(makeSlotWord(lap, slotSkip, 0))
			err = r.lonely(ringNoReceivers)
		}
		if err == nil {
			r.write(l, s, p)
			// The message holds the blocks that move. Its receiver will want their headers, so the
			// put does not touch them afterwards. A ring that goes through itself is held until the
			// put has left its slots: a reaper looks at rings that the dead hold.
			for _, h := range p.moved {
				if i := h.index(); i != r.index() {
					r.d.drop(i)
				}
			}
			s.leave(makeSlotWord(lap, slotFull, l.id), order)
			for _, i := range order {
				r.d.endPut(&r.d.blocks[i], l.id)
			}
			return nil
		}
		l.unsend(order)
		tk, ok := err.(unbacked)
		if !ok {
			return err
		}
		if err := r.extend(ctx, l, uint64(tk)); err != nil {
			return err
		}
	}
}

func (r *Ring) claimFor(l *lane, p *parcel) (*slot, uint64, error) {
	if p.name != "" {
		return r.claimName(l, p.name)
	}
	tk, _, err := r.claim(l, 1)
	return r.slot(tk), r.lap(tk), err
}

// Invariant (docs/memory.md, "Operations"): opseq is written before the slot is FULL and never goes
// back, also not when another process has the lane. A slot's lane and opseq therefore name one put
// for ever.
func (r *Ring) write(l *lane, s *slot, p *parcel) {
	s.begin(l, len(p.body), uint64(len(p.table))<<8|p.flags)
	for i, h := range p.table {
		s.block(i).Set(uint64(h))
	}
	if p.name != "" || r.news { // a peek reads it while it may change
		s.setLabel(p.body)
		return
	}
	copy(s.body[:], p.body)
}

// begin writes which put the message is of, and of what it consists.
func (s *slot) begin(l *lane, length int, rest uint64) {
	s.opseq.Set(l.rec.opseq.Load())
	s.meta.Set(uint64(l.id)<<32 | uint64(length)<<16 | rest)
}

// lockOrder returns the indices of blocks in the order in which they are stamped.
func lockOrder(order []uint32, blocks []Handle) []uint32 {
	for _, h := range blocks {
		order = append(order, h.index())
	}
	if len(order) > 1 {
		slices.Sort(order)
		if hasTwice(order) {
			panic("shm: a message carries the same block twice; send it once and refer to it by its position")
		}
	}
	return order
}

// send counts the message as a holder of each block, in ascending order, and leaves its stamp on
// them.
func (l *lane) send(order []uint32) error {
	for n, i := range order {
		if err := l.sendOne(&l.d.blocks[i]); err != nil {
			l.unsend(order[:n])
			return err
		}
	}
	return nil
}

// Invariant (docs/memory.md, "Words, stamps, evidence"): t changes only in the CAS that installs a
// stamp where none was. Two senders of one block go one after the other, and the word alone says
// which change was the last.
func (l *lane) sendOne(b *block) error {
	for {
		w := b.w.Load()
		if w.stamped() {
			if !b.idle() {
				return inTheWay(l.d.indexOf(b))
			}
			continue
		}
		if w&tMask == tMask {
			return ErrTooManyInTransit
		}
		if b.w.CAS(w, w+tOne|stamp(l.id, kindPut)) {
			return nil
		}
	}
}

// The blocks are still stamped (l, PUT), and t went up with that stamp: so one CAS takes both back,
// and a death in between leaves a block either as it was or as its reaper expects it.
func (l *lane) unsend(order []uint32) {
	for _, i := range order {
		l.d.change(&l.d.blocks[i], 0, ^stateWord(tOne)+1)
	}
}

// unbacked is the ticket of a slot without pages.
type unbacked uint64

func (unbacked) Error() string { return "shm: slot without pages" }

// claim takes the next free slots for writing: a power of two of them, at most so many, from ticket
// tk on.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): the slot's word decides and the tail
// is a hint. A lane that finds a ticket used up helps the tail on, so a lane that was killed
// between the two leaves nobody stuck.
func (r *Ring) claim(l *lane, most uint64) (tk, n uint64, err error) {
	for {
		tk = r.hdr.tail.Load()
		if r.limited(tk) {
			if r.hdr.tail.Load() == tk {
				return 0, 0, ErrFull
			}
			continue
		}
		if !r.backed(tk) {
			return 0, 0, unbacked(tk)
		}
		n = 1
		if most > 1 {
			n = r.free(tk, most)
		}
		s, lap := r.slot(tk), r.lap(tk)
		empty := makeSlotWord(lap, slotEmpty, 0)
		// without a load before the CAS, which would fetch the line twice
		if s.word.CAS(empty, makeSlotWord(lap, slotWriting, l.id).over(n)) {
			r.hdr.tail.CAS(tk, tk+n)
			return tk, n, nil
		}
		switch w := s.word.Load(); {
		case w == empty: // it has just been read
		case w.past(lap + 1): // garbage, as in next
			if r.hdr.tail.Load() == tk {
				return 0, 0, corrupt("the word of a ring's slot", uint64(w))
			}
		case !w.before(lap): // the ticket is claimed, or the ring has gone on: help
			r.hdr.tail.CAS(tk, tk+w.taken(lap, slotWriting))
		case r.hdr.tail.Load() == tk: // the message of the lap before is still there
			return 0, 0, full(w, lap)
		}
	}
}

// full returns why a put finds no room in a slot whose word is w.
func full(w slotWord, lap uint64) error {
	if w.state() == slotReading && w.lap() == lap-1 {
		return errGetting
	}
	return ErrFull
}

// extend commits more of a growing ring's slots, unless that of ticket tk has pages by now. Its
// stamp GROW keeps others from the same.
func (r *Ring) extend(ctx context.Context, l *lane, tk uint64) error {
	size := ringHead + r.cap*slotSize
	for {
		w := r.b.w.Load()
		if w.stamped() {
			if !r.b.idle() {
				return inTheWay(r.index())
			}
			continue
		}
		if r.backed(tk) {
			return nil
		}
		if r.b.w.CAS(w, w|stamp(l.id, kindGrow)) {
			break
		}
	}
	n := r.b.committed.Load()
	err := l.grow(ctx, r.b, roundUp(min(n+min(max(n, 64<<10), 4<<20), size), pageSize))
	r.d.unstamp(r.b)
	return err
}
