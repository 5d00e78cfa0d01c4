package arena

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
	w := r.d.hdr.budget.Load()
	if !w.isStamped() || !r.dead.hasLane(w.lane()) {
		return
	}
	phase, branch := uint64(phaseIdle), "budget sub"
	if w.kind() == budgetAdd {
		phase, branch = phaseCharged, "budget add"
	}
	if !isDisabled(branch) {
		r.d.recs[w.lane()].phase.Store(phase)
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
func (r *reaper) scanRing(_ uint32, b *block) bool {
	if !r.isHeldByDead(b) {
		return true
	}
	stays, known := r.remainsAllocated(b)
	if !known || !stays {
		return known
	}
	switch extKind(b.ext.Load()) {
	case objectRing:
	case objectSync:
		if c, err := r.d.cellOf(b); err == nil && r.d.fitsForm(b, c) {
			r.cells = append(r.cells, c)
		}
		return true
	default:
		return true
	}
	if v, err := r.d.ringOf(b); err == nil {
		r.views = append(r.views, v)
		v.forEachSlot(func(s *slot, w slotWord) { r.recoverSlot(v, s, w) })
		if v.hasFlags(ringLeases) {
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
func (r *reaper) remainsAllocated(b *block) (stays, known bool) {
	for {
		w := b.w.Load()
		switch {
		case w.kind() == kindFree && r.l.reaping.hasLane(w.lane()):
			return true, true
		case isDecided(w):
			return w.staysAllocated(), true
		case !pollWord(&b.w, isDecided) && r.registerObstacle(b, b.w.Load()):
			return false, false
		}
	}
}

// isHeldByDead reports whether a dead participant's owner bit is set in block b.
func (r *reaper) isHeldByDead(b *block) bool {
	for i := range b.own {
		if b.own[i].Load()&r.bits[i] != 0 {
			return true
		}
	}
	return false
}

// forEachSlot calls f with each slot of the ring that is backed by pages, and its word.
func (r *Ring) forEachSlot(f func(*slot, slotWord)) {
	for i := uint64(0); i < r.cap && r.isBacked(i); i++ {
		s := r.slot(i)
		f(s, s.word.Load())
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
func (r *reaper) recoverSlot(v *Ring, s *slot, w slotWord) {
	switch w.state() {
	case slotWriting:
		if r.dead.hasLane(w.lane()) && !isDisabled("writing") {
			v.forRestOfSpan(s, w, func(s *slot, w slotWord) {
				if (w.state() == slotEmpty || w.state() == slotFull) && !isDisabled("span written") {
					s.word.CAS(w, makeSlotWord(w.lap(), slotSkip, 0))
				}
			})
			s.word.CAS(w, makeSlotWord(w.lap(), slotSkip, 0))
		}
	case slotFull, slotReading, slotLeased:
		if w.state() == slotLeased && r.dead.hasLane(w.lane()) && !isDisabled("leased") {
			s.word.CAS(w, makeSlotWord(w.lap(), slotFull, w.lane()))
			w = s.word.Load()
		}
		id, opseq := uint32(s.meta.Load()>>32), s.opseq.Load()
		if s.word.Load() != w && s.word.Load().lap() != w.lap() {
			// The slot has another message by now, so lane and opseq may belong to different
			// messages.
			return
		}
		if id < maxLanes && r.dead.hasLane(id) && opseq == r.d.recs[id].opseq.Load() && !isDisabled("published") {
			r.published[id] = true
		}
	}
}

// resolveStamps ends or undoes the operation of each stamp of a dead lane, except for gets, which
// readers handles. It returns false if a living lane's change of the budget is in the way.
func (r *reaper) resolveStamps() bool { return r.eachBlock(r.resolveStamp) }

// resolveStamp does the work of [reaper.resolveStamps] for one block.
func (r *reaper) resolveStamp(i uint32, b *block) bool {
	w := b.w.Load()
	id := w.lane()
	if w.kind() == kindNone || !r.dead.hasLane(id) {
		return true
	}
	switch w.kind() {
	case kindAlloc, kindGrow, kindPunch:
		if !r.finishCommit(b, i, id) {
			return false
		}
		r.d.unstampBlock(b)
	case kindPut:
		r.finishPut(b, id)
	case kindFree:
		switch {
		case isDisabled("free"):
		case w&goneBit != 0 && extKind(b.ext.Load()) == objectNone:
			// Only the last write of the free is missing.
			r.d.changeStamped(b, allocBit, genOne)
			r.d.markHintsLost()
		default:
			r.d.unstampBlock(b)
		}
	}
	return true
}

// finishPut ends or undoes the put of dead lane id on block b.
//
// Invariant (docs/memory.md, "The reaper"): the slot is the evidence that a put was published. If
// it was, t counts the reference of its message, and only the stamp is cleared. If it was not, t is
// decremented too. Its WRITING slot is a SKIP slot by now, so the message cannot appear later.
func (r *reaper) finishPut(b *block, id uint32) {
	switch {
	case r.published[id] && !isDisabled("put published"):
		r.d.endPut(b, id)
	case b.w.Load().transitCount() == 0: // corrupt: no put has counted a reference
		r.d.unstampBlock(b)
	case !r.published[id] && !isDisabled("put undone"):
		r.d.changeStamped(b, 0, ^stateWord(tOne)+1)
	}
}

// finishCommit ends or undoes dead lane id's commit of block i. It returns false if a living lane's
// change of the budget is in the way; this process is woken when that change ends.
//
// The lane record is used only if it names this block. Otherwise the lane died after it set the
// stamp and before it wrote the record, so nothing of this commit was charged.
//
// Pages are uncharged in the name of the dead lane.
func (r *reaper) finishCommit(b *block, i, id uint32) bool {
	rec := &r.d.recs[id]
	if rec.block.Load() != uint64(i) {
		return true
	}
	var err error
	done := b.committed.Load() == rec.target.Load()
	switch phase := rec.phase.Load(); {
	case phase == phaseCharged && done && !isDisabled("commit done"):
		rec.phase.Store(phaseIdle)
	case phase == phaseCharged && !done && !isDisabled("commit undo"):
		err = r.l.refundCharge(b, id)
	case phase == phaseShrink && !isDisabled("shrink"):
		err = r.l.finishShrink(b, id)
	}
	return err == nil
}

// endGets ends the gets of the dead lanes: each message is dropped, and never delivered twice. It
// returns the lanes that it could not finish because a living lane is in the way. It repeats the
// scan as long as it makes progress, because one dead lane's message may have to wait for
// another's.
func (r *reaper) endGets() map[uint32]bool {
	for {
		pending, progress := make(map[uint32]bool), false
		for _, v := range r.views {
			v.forEachSlot(func(s *slot, w slotWord) {
				if w.state() != slotReading || !r.dead.hasLane(w.lane()) || isDisabled("reader") {
					return
				}
				if r.finishGet(v, s, w) {
					progress = true
				} else {
					pending[w.lane()] = true
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
func (r *reaper) finishGet(v *Ring, s *slot, w slotWord) bool {
	id := w.lane()
	mine := makeStamp(id, kindGet)
	v.forRestOfSpan(s, w, func(s *slot, w slotWord) {
		if w.state() == slotFull && !isDisabled("span read") {
			s.word.Store(makeSlotWord(w.lap()+1, slotEmpty, 0))
		}
	})
	m := &Message{d: r.d}
	if err := m.rereadSlot(s); err != nil {
		s.word.Store(makeSlotWord(w.lap()+1, slotEmpty, 0))
		return true
	}
	for _, i := range m.order {
		b := &r.d.blocks[i]
		for {
			bw := b.w.Load()
			if bw&xoMask == mine {
				break
			}
			if bw&xoMask != 0 {
				if r.registerObstacle(b, bw) {
					return false
				}
				continue
			}
			if bw.transitCount() == 0 || b.w.CAS(bw, bw-tOne|mine) {
				break // a count of 0 is corrupt: there is nothing to decrement
			}
		}
	}
	r.d.hdr.dropped.Add(w.span())
	s.word.Store(makeSlotWord(w.lap()+1, slotEmpty, 0))
	for _, i := range m.order {
		if b := &r.d.blocks[i]; b.w.Load()&xoMask == mine {
			r.d.unstampBlock(b)
		}
	}
	return true
}

// registerObstacle registers for a wakeup when the stamp in w clears, and records it as the
// obstacle. It returns false if the stamp has cleared already. The CAS is the second look that the
// protocol requires, even if WAIT is set already.
//
// A pass must not block on an operation (docs/memory.md, "The reaper"): the living lane might
// itself wait for a stamp of a dead one. So the reaper goes on, and comes back with a new pass.
func (r *reaper) registerObstacle(b *block, w stateWord) bool {
	r.d.setBit(&r.d.hdr.xowait)
	if !w.isStamped() || !b.w.CAS(w, w|waitBit) {
		return false
	}
	r.stuck = obstacle{b, w & xoMask}
	return true
}

// clearStrayGets clears the GET stamps of dead lanes that have emptied their slot already. In this
// state t is right, and only the stamp remains. It skips the lanes in pending, because readers
// needs their stamps as evidence in the next pass.
func (r *reaper) clearStrayGets(pending map[uint32]bool) {
	r.eachBlock(func(_ uint32, b *block) bool {
		if w := b.w.Load(); w.kind() == kindGet && r.dead.hasLane(w.lane()) && !pending[w.lane()] &&
			!isDisabled("stray get") {
			r.d.unstampBlock(b)
		}
		return true
	})
}
