package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// TryPut puts a message with the given body and blocks. The caller must hold each block and must
// not pass a block twice. If move is true and TryPut succeeds, the message takes over the caller's
// reference to each block.
//
// It returns [ErrFull], [ErrFinished], [ErrTooManyInTransit] or [ErrNoSpace]. If another process is
// stopped in the middle of a put or get of one of the blocks, or of a get from the slot, TryPut
// waits for up to one second and then returns [context.DeadlineExceeded].
func (r *Ring) TryPut(body []byte, blocks []Handle, move bool) error {
	err := r.tryPut(briefly, body, blocks, move)
	for err == errGetting {
		if word.IsDisabled("unfinished get") {
			return ErrFull
		}
		waited := r.awaitOtherLane(&r.notFull, r.isWritable)
		if err = r.tryPut(briefly, body, blocks, move); err == errGetting && waited != nil {
			return waited
		}
	}
	return err
}

// Put is [Ring.TryPut], but waits until ctx ends for a free slot and for other processes'
// operations on the blocks, and then tries once more. It returns the cause of ctx if there is
// still no slot, and [ErrClosed] if the view or the domain is closed while it waits. A Put that
// returns an error has put nothing.
func (r *Ring) Put(ctx context.Context, body []byte, blocks []Handle, move bool) error {
	var ended error
	for waited := false; ; waited = true {
		err := r.tryPut(ctx, body, blocks, move)
		if ended != nil && err == errGetting && isPastDeadline(ctx) {
			err = r.TryPut(body, blocks, move)
		}
		if err == nil || !errors.Is(err, ErrFull) {
			if waited {
				r.notFull.PassWakeup()
			}
			return err
		}
		if ended != nil {
			return ended
		}
		if ended = r.notFull.Await(ctx, r.isClosed); ended == ErrClosed {
			return ended
		}
	}
}

// tryPut is TryPut, but waits for other lanes' operations on the blocks until ctx ends. It returns
// errGetting if another lane is reading the slot.
func (r *Ring) tryPut(ctx context.Context, body []byte, blocks []Handle, move bool) error {
	if r.hasFlags(layout.RingFinished | layout.RingNoReceivers) {
		return r.finishedError(layout.RingNoReceivers)
	}
	for _, h := range blocks {
		if _, err := r.d.checkHandle(h); err != nil {
			return fmt.Errorf("put %v: %w", h, err)
		}
	}
	if len(body) > layout.SlotBody || len(blocks) > layout.SlotBlocks {
		return r.spillAndPublish(ctx, body, blocks, move)
	}
	// field by field: a literal is copied, and the copy waits for the fields' stores
	var p outgoing
	p.body, p.table, p.blocks = body, blocks, blocks
	if move {
		p.moved = blocks
	}
	return r.publish(ctx, &p)
}

// An outgoing is a message to be put.
type outgoing struct {
	name   string // for a board: the message's name
	body   []byte
	table  []Handle // handles stored in the slot
	blocks []Handle // all blocks that the message holds
	moved  []Handle // blocks with a reference that moves to the message
	flags  uint64
}

// publish implements the put of docs/memory.md: stamp the blocks, claim a slot, write the
// message, publish it, clear the stamps. If another lane's stamp is in the way for more than a
// moment, publish clears its own stamps and waits, until ctx ends, without holding a lane. If it
// returns an error, it has put nothing and dropped no reference.
func (r *Ring) publish(ctx context.Context, p *outgoing) error {
	var few [layout.SlotBlocks]uint32
	order := lockOrder(few[:0], p.blocks)
	for {
		l, err := r.d.acquireLaneFor(ctx)
		if err != nil {
			return err
		}
		l.incrementOpseq()
		err = r.publishInLane(ctx, l, p, order)
		if err == nil && r.news {
			r.d.park.WakeBits(&r.hdr.NotEmpty)
		} else if err == nil {
			// within the lane, so that Close waits for it: the ring may be gone afterwards
			r.notEmpty.WakeParticipant()
		}
		deserted := (err == nil || errors.Is(err, ErrFinished)) && r.hasNoReceivers()
		if deserted {
			r.d.addRef(r.index()) // while our own end is still there
		}
		if err == nil && r.isAmong(p.moved) {
			l.releaseBlock(r.index())
		}
		l.unlock()
		if deserted {
			r.d.drainInOtherLane(nil, r.index(), time.Duration(briefly))
		}
		if err == nil {
			return nil
		}
		i, ok := err.(inTheWay)
		if !ok {
			return r.d.explainShortage(err)
		}
		if err := r.d.awaitObstacle(ctx, i); err != nil {
			return err
		}
	}
}

// incrementOpseq increments the lane's put number for the put that begins.
func (l *lane) incrementOpseq() { l.rec.Opseq.Set(l.rec.Opseq.Load() + 1) }

// isAmong reports whether the ring's own block is one of the blocks.
func (r *Ring) isAmong(blocks []Handle) bool {
	return slices.ContainsFunc(blocks, func(h Handle) bool { return h.Block() == r.index() })
}

func (r *Ring) index() uint32 { return r.d.indexOf(r.b) }

// publishInLane publishes the message within lane l. It keeps the order by which a reaper tells a
// message that was sent from one that was not (docs/memory.md, "Operations"): every block must be
// stamped before a slot is claimed, and the slot must be FULL before a stamp is cleared. So if a
// dead sender's stamp stands beside a slot that names its put, the message was sent; otherwise the
// reaper decrements t. No reference is dropped before a slot is claimed: a refused put has nothing
// to restore.
func (r *Ring) publishInLane(ctx context.Context, l *lane, p *outgoing, order []uint32) error {
	for {
		if err := l.stampForPut(order); err != nil {
			return err
		}
		s, lap, err := r.claimSlotFor(l, p)
		if err == nil && r.hasNoReceivers() { // a slot emptied by a drain is no room
			s.Word.Store(word.MakeSlot(lap, word.SlotSkip, 0))
			err = r.finishedError(layout.RingNoReceivers)
		}
		if err == nil {
			r.writeMessage(l, s, p)
			// The message holds the blocks that move. Its receiver will use their headers, so the
			// put must not touch them afterwards. If the ring itself is one of the blocks, it must
			// be held until the put has left its slots, because a reaper looks only at rings that a
			// dead participant held.
			for _, h := range p.moved {
				if i := h.Block(); i != r.index() {
					r.d.dropRef(i)
				}
			}
			s.StoreEndWord(word.MakeSlot(lap, word.SlotFull, l.id), order)
			for _, i := range order {
				r.d.endPut(&r.d.mem.Blocks[i], l.id)
			}
			return nil
		}
		l.revertPutStamps(order)
		tk, ok := err.(unbacked)
		if !ok {
			return err
		}
		if err := r.commitSlots(ctx, l, uint64(tk)); err != nil {
			return err
		}
	}
}

func (r *Ring) claimSlotFor(l *lane, p *outgoing) (*layout.Slot, uint64, error) {
	if p.name != "" {
		return r.claimName(l, p.name)
	}
	tk, _, err := r.claimSlots(l, 1)
	return r.slot(tk), r.lap(tk), err
}

// writeMessage writes the message into its claimed slot.
//
// Invariant (docs/memory.md, "Operations"): opseq must be written before the slot is FULL, and must
// never decrease, even when another process gets the lane. So the lane and opseq of a slot identify
// one put for ever.
func (r *Ring) writeMessage(l *lane, s *layout.Slot, p *outgoing) {
	l.setHeader(s, len(p.body), uint64(len(p.table))<<8|p.flags)
	for i, h := range p.table {
		s.BlockWord(i).Set(uint64(h))
	}
	if p.name != "" || r.news { // a peek may read it while it changes
		s.SetLabel(p.body)
		return
	}
	copy(s.Body[:], p.body)
}

// setHeader writes the fields of a slot that identify the put and describe the message's
// contents. length is the length of the body in bytes, and rest has the number of blocks, from
// bit 8 on, and the flags.
func (l *lane) setHeader(s *layout.Slot, length int, rest uint64) {
	s.Opseq.Set(l.rec.Opseq.Load())
	s.Meta.Set(uint64(l.id)<<32 | uint64(length)<<16 | rest)
}

// lockOrder appends the indices of blocks to order, sorted in the order in which they must be
// stamped. It panics if a block occurs twice.
func lockOrder(order []uint32, blocks []Handle) []uint32 {
	for _, h := range blocks {
		order = append(order, h.Block())
	}
	if len(order) > 1 {
		slices.Sort(order)
		if hasDuplicates(order) {
			panic("shm: message contains the same block twice: send it once and refer to it by its position")
		}
	}
	return order
}

// stampForPut increments the transit count of each block in order, which must be sorted, and
// installs the lane's stamp. If it fails with an error of [lane.stampBlockForPut], it undoes the
// blocks done so far.
func (l *lane) stampForPut(order []uint32) error {
	for n, i := range order {
		if err := l.stampBlockForPut(&l.d.mem.Blocks[i]); err != nil {
			l.revertPutStamps(order[:n])
			return err
		}
	}
	return nil
}

// stampBlockForPut increments the transit count of one block. It returns inTheWay if another lane's
// stamp does not clear in a moment, and [ErrTooManyInTransit].
//
// Invariant (docs/memory.md, "Words, stamps, evidence"): t changes only in the CAS that installs a
// stamp on a word without one. Two senders of one block go one after the other, and the word alone
// tells which change was the last.
func (l *lane) stampBlockForPut(b *layout.Block) error {
	for {
		w := b.State.Load()
		if w.IsStamped() {
			if !pollUnstamped(b) {
				return inTheWay(l.d.indexOf(b))
			}
			continue
		}
		if w&word.TMask == word.TMask {
			return ErrTooManyInTransit
		}
		if b.State.CAS(w, w+word.TOne|word.MakeStamp(l.id, word.KindPut)) {
			return nil
		}
	}
}

// revertPutStamps undoes stampForPut. The blocks must still be stamped (l, PUT). t was incremented
// together with that stamp, so one CAS undoes both, and a death in between leaves each block either
// as it was before the put or as its reaper expects it.
func (l *lane) revertPutStamps(order []uint32) {
	for _, i := range order {
		l.d.changeStamped(&l.d.mem.Blocks[i], 0, ^word.State(word.TOne)+1)
	}
}

// unbacked is the ticket of a slot without pages.
type unbacked uint64

func (unbacked) Error() string { return "shm: slot without pages" }

// claimSlots claims the next free slots for writing. It returns the ticket of the first one and
// their number, which is a power of two and does not exceed most. It returns [ErrFull],
// errGetting if another lane is still reading the next slot, unbacked if that slot has no pages,
// and [ErrCorrupt].
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): the slot's word decides and the
// tail is only a hint. A lane that finds a ticket used up must help the tail forward, so a lane
// that is killed in between does not stop the others.
func (r *Ring) claimSlots(l *lane, most uint64) (tk, n uint64, err error) {
	for {
		tk = r.hdr.Tail.Load()
		if r.exceedsLimit(tk) {
			if r.hdr.Tail.Load() == tk {
				return 0, 0, ErrFull
			}
			continue
		}
		if !r.isBacked(tk) {
			return 0, 0, unbacked(tk)
		}
		n = 1
		if most > 1 {
			n = r.countFree(tk, most)
		}
		s, lap := r.slot(tk), r.lap(tk)
		empty := word.MakeSlot(lap, word.SlotEmpty, 0)
		// no load before the CAS, which would fetch the cache line twice
		if s.Word.CAS(empty, word.MakeSlot(lap, word.SlotWriting, l.id).WithSpan(n)) {
			r.hdr.Tail.CAS(tk, tk+n)
			return tk, n, nil
		}
		switch w := s.Word.Load(); {
		case w == empty: // it was emptied just now
		case w.IsAfter(lap + 1): // corrupt, as in next
			if r.hdr.Tail.Load() == tk {
				return 0, 0, reportCorruption("the word of a ring's slot", uint64(w))
			}
		case !w.IsBefore(lap): // the ticket is claimed, or the ring has moved on: help
			r.hdr.Tail.CAS(tk, tk+w.UsedTickets(lap, word.SlotWriting))
		case r.hdr.Tail.Load() == tk: // the message of the lap before is still there
			return 0, 0, fullError(w, lap)
		}
	}
}

// fullError returns the error of a put that finds no room in a slot with word w: errGetting if
// the slot is still being read in the lap before, and otherwise [ErrFull].
func fullError(w word.Slot, lap uint64) error {
	if w.State() == word.SlotReading && w.Lap() == lap-1 {
		return errGetting
	}
	return ErrFull
}

// commitSlots commits more slots of a growing ring, unless the slot of ticket tk has pages by now.
// The stamp GROW excludes other lanes that try the same. If another lane's stamp is on the ring's
// block for more than a moment, commitSlots returns inTheWay and has changed nothing. Otherwise the
// error is that the memory cannot be committed, such as [ErrNoSpace].
func (r *Ring) commitSlots(ctx context.Context, l *lane, tk uint64) error {
	size := layout.RingHeaderSize + r.cap*layout.SlotSize
	for {
		w := r.b.State.Load()
		if w.IsStamped() {
			if !pollUnstamped(r.b) {
				return inTheWay(r.index())
			}
			continue
		}
		if r.isBacked(tk) {
			return nil
		}
		if r.b.State.CAS(w, w|word.MakeStamp(l.id, word.KindGrow)) {
			break
		}
	}
	n := r.b.Committed.Load()
	err := l.growBlock(ctx, r.b, layout.RoundUp(min(n+min(max(n, 64<<10), 4<<20), size), layout.PageSize))
	r.d.unstampBlock(r.b)
	return err
}
