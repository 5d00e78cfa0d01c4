package arena

import (
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// endOperations ends or undoes every operation of the dead lanes: steps 2 to 6 of docs/memory.md,
// "The reaper". It never blocks. It returns false if a living lane is in the way.
//
// The order matters. The budget comes first, because a commit is judged by the phase that the
// budget's stamp implies. Slots come before stamps, because a put is judged by the state of its
// slot. Puts come before gets, because a get may need a put's stamp to be cleared. Each step may be
// repeated: it reads from the word whether it was done.
func (r *reaper) endOperations() bool {
	r.completeBudget()
	if !r.scanRings() || !r.resolveStamps() {
		return false
	}
	pending := r.endGets()
	r.clearStrayGets(pending)
	return len(pending) == 0
}

// completeBudget completes a dead lane's change of the budget word: the pages were added or
// subtracted by the CAS that set the stamp.
//
// Invariant (docs/memory.md, "Budget and commit"): the stamp is the evidence of that CAS.
// completeBudget copies the evidence to the lane record's phase before it clears the stamp, so that
// another lane may change the budget.
func (r *reaper) completeBudget() {
	w := r.d.mem.Header.Budget.Load()
	if !w.IsStamped() || !r.dead.hasLane(w.Lane()) {
		return
	}
	phase, branch := uint64(layout.PhaseIdle), "budget sub"
	if w.Kind() == word.BudgetAdd {
		phase, branch = layout.PhaseCharged, "budget add"
	}
	if !word.IsDisabled(branch) {
		r.d.mem.Lanes[w.Lane()].Phase.Store(phase)
	}
	r.d.clearBudgetStamp()
}

// scanRings turns the slots that dead lanes were writing into SKIP slots, and records which of
// their puts were published. It also collects the rings and cells that the dead participants hold.
// Only a ring that a dead participant holds can have such slots, and such a ring cannot be freed
// during the scan. scanRings returns false if a living lane is deciding whether one of them is
// free.
func (r *reaper) scanRings() bool { return r.eachBlock(r.scanRing) }

// scanRing does the work of [reaper.scanRings] for one block.
func (r *reaper) scanRing(_ uint32, b *layout.Block) bool {
	if !r.isHeldByDead(b) {
		return true
	}
	stays, known := r.remainsAllocated(b)
	if !known || !stays {
		return known
	}
	switch layout.ExtentKind(b.Extent.Load()) {
	case layout.ObjectRing:
	case layout.ObjectSync:
		if c, err := r.d.cellOf(b); err == nil && r.d.fitsForm(b, c) {
			r.cells = append(r.cells, c)
		}
		return true
	default:
		return true
	}
	if v, err := r.d.ringOf(b); err == nil {
		r.views = append(r.views, v)
		v.forEachSlot(func(s *layout.Slot, w word.Slot) { r.recoverSlot(v, s, w) })
		if v.hasFlags(layout.RingLeases) {
			// A dead lane, or an earlier reaper, may have returned a message without counting it.
			v.countReturn()
		}
	}
	return true
}

// remainsAllocated reports whether block b will not be freed. It may be freed although a dead
// participant's bit is set: the bit may have been set too late, by a participant that looked at the
// ring in finaliseEnd. known is false if a living lane is deciding this now; the reaper must then
// stop its pass, and not wait with the recovery lock held.
func (r *reaper) remainsAllocated(b *layout.Block) (stays, known bool) {
	for {
		w := b.State.Load()
		switch {
		case w.Kind() == word.KindFree && r.l.reaping.hasLane(w.Lane()):
			return true, true
		case isDecided(w):
			return w.StaysAllocated(), true
		case !pollWord(&b.State, isDecided) && r.registerObstacle(b, b.State.Load()):
			return false, false
		}
	}
}

// isHeldByDead reports whether a dead participant's owner bit is set in block b.
func (r *reaper) isHeldByDead(b *layout.Block) bool {
	for i := range b.Own {
		if b.Own[i].Load()&r.bits[i] != 0 {
			return true
		}
	}
	return false
}

// forEachSlot calls f with each slot of the ring that is backed by pages, and its word.
func (r *Ring) forEachSlot(f func(*layout.Slot, word.Slot)) {
	for i := uint64(0); i < r.cap && r.isBacked(i); i++ {
		s := r.slot(i)
		f(s, s.Word.Load())
	}
}

// recoverSlot handles one slot of a ring, by its word w: it turns a WRITING slot of a dead lane
// into a SKIP slot, returns a LEASED slot of a dead lane to FULL, and records in r.published a
// message that is a dead lane's newest put.
//
// The slot's lane and opseq must be read between two reads of its word. Otherwise they could come
// from two messages, and be evidence of a put that never happened. A message counts as the dead
// lane's newest put only if its opseq equals the lane record's, because a lane has stamps of at
// most one put.
//
// The other slots of a span become SKIP before the first one does: until then no lane reaches them.
func (r *reaper) recoverSlot(v *Ring, s *layout.Slot, w word.Slot) {
	switch w.State() {
	case word.SlotWriting:
		if r.dead.hasLane(w.Lane()) && !word.IsDisabled("writing") {
			v.forRestOfSpan(s, w, func(s *layout.Slot, w word.Slot) {
				if (w.State() == word.SlotEmpty || w.State() == word.SlotFull) && !word.IsDisabled("span written") {
					s.Word.CAS(w, word.MakeSlot(w.Lap(), word.SlotSkip, 0))
				}
			})
			s.Word.CAS(w, word.MakeSlot(w.Lap(), word.SlotSkip, 0))
		}
	case word.SlotFull, word.SlotReading, word.SlotLeased:
		if w.State() == word.SlotLeased && r.dead.hasLane(w.Lane()) && !word.IsDisabled("leased") {
			s.Word.CAS(w, word.MakeSlot(w.Lap(), word.SlotFull, w.Lane()))
			w = s.Word.Load()
		}
		id, opseq := uint32(s.Meta.Load()>>32), s.Opseq.Load()
		if s.Word.Load() != w && s.Word.Load().Lap() != w.Lap() {
			// The slot has another message by now, so lane and opseq may belong to different
			// messages.
			return
		}
		if id < layout.MaxLanes && r.dead.hasLane(id) && opseq == r.d.mem.Lanes[id].Opseq.Load() &&
			!word.IsDisabled("published") {
			r.published[id] = true
		}
	}
}

// resolveStamps ends or undoes the operation of each stamp of a dead lane, except for gets,
// which endGets handles. It returns false if a living lane's change of the budget is in the way.
func (r *reaper) resolveStamps() bool { return r.eachBlock(r.resolveStamp) }

// resolveStamp does the work of [reaper.resolveStamps] for one block.
func (r *reaper) resolveStamp(i uint32, b *layout.Block) bool {
	w := b.State.Load()
	id := w.Lane()
	if w.Kind() == word.KindNone || !r.dead.hasLane(id) {
		return true
	}
	switch w.Kind() {
	case word.KindAlloc, word.KindGrow, word.KindPunch:
		if !r.finishCommit(b, i, id) {
			return false
		}
		r.d.unstampBlock(b)
	case word.KindPut:
		r.finishPut(b, id)
	case word.KindFree:
		switch {
		case word.IsDisabled("free"):
		case w&word.GoneBit != 0 && layout.ExtentKind(b.Extent.Load()) == layout.ObjectNone:
			// Only the last write of the free is missing.
			r.d.changeStamped(b, word.AllocBit, word.GenOne)
			r.d.markHintsLost()
		default:
			r.d.unstampBlock(b)
		}
	}
	return true
}

// finishPut ends or undoes the put of dead lane id on block b, which has the lane's PUT stamp.
//
// Invariant (docs/memory.md, "The reaper"): the slot is the evidence that a put was published.
// If it was, the block's transit count t includes its message, and only the stamp is cleared. If
// it was not, t is decremented too. Its WRITING slot is a SKIP slot by now, so the message
// cannot appear later.
func (r *reaper) finishPut(b *layout.Block, id uint32) {
	switch {
	case r.published[id] && !word.IsDisabled("put published"):
		r.d.endPut(b, id)
	case b.State.Load().TransitCount() == 0: // corrupt: no put has counted a reference
		r.d.unstampBlock(b)
	case !r.published[id] && !word.IsDisabled("put undone"):
		r.d.changeStamped(b, 0, ^word.State(word.TOne)+1)
	}
}

// finishCommit ends or undoes dead lane id's commit of block i. It returns false if a living lane's
// change of the budget is in the way; this process is woken when that change ends.
//
// The lane record is used only if it names this block. Otherwise the lane died after it set the
// stamp and before it wrote the record, so nothing of this commit was charged.
//
// Pages are uncharged in the name of the dead lane.
func (r *reaper) finishCommit(b *layout.Block, i, id uint32) bool {
	rec := &r.d.mem.Lanes[id]
	if rec.Block.Load() != uint64(i) {
		return true
	}
	var err error
	done := b.Committed.Load() == rec.Target.Load()
	switch phase := rec.Phase.Load(); {
	case phase == layout.PhaseCharged && done && !word.IsDisabled("commit done"):
		rec.Phase.Store(layout.PhaseIdle)
	case phase == layout.PhaseCharged && !done && !word.IsDisabled("commit undo"):
		err = r.l.refundCharge(b, id)
	case phase == layout.PhaseShrink && !word.IsDisabled("shrink"):
		err = r.l.finishShrink(b, id)
	}
	return err == nil
}

// endGets ends the gets of the dead lanes: each message is dropped, and never delivered twice.
// It returns the set of the lanes that it could not finish because a living lane is in the way.
// It repeats the scan as long as it makes progress, because one dead lane's message may have to
// wait for another's.
func (r *reaper) endGets() map[uint32]bool {
	for {
		pending, progress := make(map[uint32]bool), false
		for _, v := range r.views {
			v.forEachSlot(func(s *layout.Slot, w word.Slot) {
				if w.State() != word.SlotReading || !r.dead.hasLane(w.Lane()) || word.IsDisabled("reader") {
					return
				}
				if r.finishGet(v, s, w) {
					progress = true
				} else {
					pending[w.Lane()] = true
				}
			})
		}
		if len(pending) == 0 || !progress {
			return pending
		}
	}
}

// finishGet ends the get of slot s for the dead lane named in its word w: it drops the message's
// references in that lane's name and empties the slot. It returns false if a living lane's stamp is
// in the way. The dead participant's owner bits are cleared later.
//
// A block with the dead lane's GET stamp was already handled, by the lane itself or by an earlier
// reaper. So t is decremented exactly once for each block (docs/memory.md, "The reaper"). The
// message is counted as dropped.
//
// The messages of a span have no blocks. Its first slot is emptied last, as by a living reader.
func (r *reaper) finishGet(v *Ring, s *layout.Slot, w word.Slot) bool {
	id := w.Lane()
	mine := word.MakeStamp(id, word.KindGet)
	v.forRestOfSpan(s, w, func(s *layout.Slot, w word.Slot) {
		if w.State() == word.SlotFull && !word.IsDisabled("span read") {
			s.Word.Store(word.MakeSlot(w.Lap()+1, word.SlotEmpty, 0))
		}
	})
	m := &Message{d: r.d}
	if err := m.rereadSlot(s); err != nil {
		s.Word.Store(word.MakeSlot(w.Lap()+1, word.SlotEmpty, 0))
		return true
	}
	for _, i := range m.order {
		b := &r.d.mem.Blocks[i]
		for {
			bw := b.State.Load()
			if bw&word.StampMask == mine {
				break
			}
			if bw&word.StampMask != 0 {
				if r.registerObstacle(b, bw) {
					return false
				}
				continue
			}
			if bw.TransitCount() == 0 || b.State.CAS(bw, bw-word.TOne|mine) {
				break // a count of 0 is corrupt: there is nothing to decrement
			}
		}
	}
	r.d.mem.Header.Dropped.Add(w.Span())
	s.Word.Store(word.MakeSlot(w.Lap()+1, word.SlotEmpty, 0))
	for _, i := range m.order {
		if b := &r.d.mem.Blocks[i]; b.State.Load()&word.StampMask == mine {
			r.d.unstampBlock(b)
		}
	}
	return true
}

// registerObstacle registers for a wakeup when the stamp in w, the state word of b, clears, and
// records it as the obstacle. It returns false if the stamp has cleared already. The CAS is the
// second look that the protocol requires, even if WAIT is set already.
//
// A pass must not block on an operation (docs/memory.md, "The reaper"): the living lane might
// itself wait for a stamp of a dead one. So the reaper goes on, and comes back with a new pass.
func (r *reaper) registerObstacle(b *layout.Block, w word.State) bool {
	r.d.park.SetBit(&r.d.mem.Header.XOWait)
	if !w.IsStamped() || !b.State.CAS(w, w|word.WaitBit) {
		return false
	}
	r.stuck = obstacle{b, w & word.StampMask}
	return true
}

// clearStrayGets clears the GET stamps of dead lanes that have emptied their slot already. In
// this state t is right, and only the stamp remains. It skips the lanes in pending, because
// endGets needs their stamps as evidence in the next pass.
func (r *reaper) clearStrayGets(pending map[uint32]bool) {
	r.eachBlock(func(_ uint32, b *layout.Block) bool {
		if w := b.State.Load(); w.Kind() == word.KindGet && r.dead.hasLane(w.Lane()) && !pending[w.Lane()] &&
			!word.IsDisabled("stray get") {
			r.d.unstampBlock(b)
		}
		return true
	})
}
