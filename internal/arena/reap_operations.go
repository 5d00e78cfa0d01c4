package arena

// operations ends or undoes every operation of the dead. It waits for nobody, and reports false
// where a living lane stands in the way.
//
// The order is part of the protocol (docs/memory.md, "The reaper"): the budget first, because a
// commit is ended by the phase that the budget's stamp stands for; slots before stamps, because a
// put is judged by whether its slot is FULL; puts before gets, because a get may wait for a put's
// stamp. Each step may be done twice: it asks the word whether it was done.
func (r *reaper) operations() bool {
	r.budget()
	if !r.rings() || !r.stamps() {
		return false
	}
	pending := r.readers()
	r.strayGets(pending)
	return len(pending) == 0
}

// budget ends a dead lane's change of the budget: its stamp says that the pages were added or
// taken.
//
// Invariant (docs/memory.md, "Budget and commit"): the stamp is the evidence that the pages of the
// lane's record were added or taken. The phase says the same from then on, so the stamp can go
// before another lane wants the budget.
func (r *reaper) budget() {
	w := r.d.hdr.budget.Load()
	if !w.stamped() || !r.dead.lane(w.lane()) {
		return
	}
	phase, branch := uint64(phaseIdle), "budget sub"
	if w.kind() == budgetAdd {
		phase, branch = phaseCharged, "budget add"
	}
	if !disabled(branch) {
		r.d.recs[w.lane()].phase.Store(phase)
	}
	r.d.unstampBudget()
}

// rings turns slots that the dead were writing into holes, and notes which of their puts were
// published. Only rings that a dead participant holds can have such slots. Such a ring cannot be
// freed during the look, as others can. rings reports false where a living lane is finding out
// whether one of them is free.
func (r *reaper) rings() bool {
	for i := uint32(1); uint64(i) < r.d.count(); i++ {
		b := &r.d.blocks[i]
		if !r.heldByDead(b) {
			continue
		}
		stays, known := r.stays(b)
		if !known {
			return false
		}
		if !stays {
			continue
		}
		switch extKind(b.ext.Load()) {
		case objectRing:
		case objectSync:
			if c, err := r.d.cellOf(b); err == nil && r.d.fits(b, c) {
				r.cells = append(r.cells, c)
			}
			continue
		default:
			continue
		}
		if v, err := r.d.ringOf(b); err == nil {
			r.views = append(r.views, v)
			v.each(func(s *slot, w slotWord) { r.slot(v, s, w) })
			if v.finished(ringLeases) {
				v.countReturn() // also for a dead lane, or reaper, that has returned a message and not counted it
			}
		}
	}
	return true
}

// stays reports whether b will not be freed: the bit of a dead participant that looked at the ring
// in endGone may have come too late to keep it. A reaper that cannot tell yet waits, without the
// recovery lock.
func (r *reaper) stays(b *block) (stays, known bool) {
	for {
		w := b.w.Load()
		switch {
		case w.kind() == kindFree && r.l.reaping.lane(w.lane()):
			return true, true
		case decided(w):
			return w.staying(), true
		case !polled(&b.w, decided) && r.waitFor(b, b.w.Load()):
			return false, false
		}
	}
}

func (r *reaper) heldByDead(b *block) bool {
	for i := range b.own {
		if b.own[i].Load()&r.bits[i] != 0 {
			return true
		}
	}
	return false
}

func (r *Ring) each(f func(*slot, slotWord)) {
	for i := uint64(0); i < r.cap && r.backed(i); i++ {
		s := r.slot(i)
		f(s, s.word.Load())
	}
}

// The slot is read between two looks at its word: lane and opseq of two messages, one of each,
// would be evidence of a put that never was. A message is taken for the dead lane's newest only if
// opseq is still that of the lane's record, since a lane has at most one put that a stamp can stand
// for.
//
// The slots of a span become holes before its first one does: until then nobody comes to them.
func (r *reaper) slot(v *Ring, s *slot, w slotWord) {
	switch w.state() {
	case slotWriting:
		if r.dead.lane(w.lane()) && !disabled("writing") {
			v.rest(s, w, func(s *slot, w slotWord) {
				if (w.state() == slotEmpty || w.state() == slotFull) && !disabled("span written") {
					s.word.CAS(w, makeSlotWord(w.lap(), slotSkip, 0))
				}
			})
			s.word.CAS(w, makeSlotWord(w.lap(), slotSkip, 0))
		}
	case slotFull, slotReading, slotLeased:
		if w.state() == slotLeased && r.dead.lane(w.lane()) && !disabled("leased") {
			s.word.CAS(w, makeSlotWord(w.lap(), slotFull, w.lane()))
			w = s.word.Load()
		}
		id, opseq := uint32(s.meta.Load()>>32), s.opseq.Load()
		if s.word.Load() != w && s.word.Load().lap() != w.lap() {
			return // another message by now: lane and number may be of two messages
		}
		if id < maxLanes && r.dead.lane(id) && opseq == r.d.recs[id].opseq.Load() && !disabled("published") {
			r.published[id] = true
		}
	}
}

// stamps ends or undoes the operations of the dead on each block, except gets, which readers ends.
// It reports false where a living lane is in the middle of a change of the budget.
func (r *reaper) stamps() bool {
	for i := uint32(1); uint64(i) < r.d.count(); i++ {
		b := &r.d.blocks[i]
		w := b.w.Load()
		id := w.lane()
		if w.kind() == kindNone || !r.dead.lane(id) {
			continue
		}
		switch w.kind() {
		case kindAlloc, kindGrow, kindPunch:
			if !r.finishCommit(b, i, id) {
				return false
			}
			r.d.unstamp(b)
		case kindPut:
			r.finishPut(b, id)
		case kindFree:
			switch {
			case disabled("free"):
			case w&goneBit != 0 && extKind(b.ext.Load()) == objectNone: // all but the last write of a free
				r.d.change(b, allocBit, genOne)
				r.d.loseHints()
			default:
				r.d.unstamp(b)
			}
		}
	}
	return true
}

// Invariant (docs/memory.md, "The reaper"): a put is published or not, and its slot is the
// evidence. A published put has its message, whose reference t counts: only the stamp goes. A put
// that was not published is undone. A dead lane's WRITING slot has been made a hole before, so no
// message of it can appear any more.
func (r *reaper) finishPut(b *block, id uint32) {
	switch {
	case r.published[id] && !disabled("put published"):
		r.d.endPut(b, id)
	case b.w.Load().transit() == 0: // garbage: no put has counted a reference
		r.d.unstamp(b)
	case !r.published[id] && !disabled("put undone"):
		r.d.change(b, 0, ^stateWord(tOne)+1)
	}
}

// finishCommit ends or undoes a dead lane's commit of block i.
//
// The lane's record is believed only if it names this block: the lane may have died stamped and
// before it wrote the record, and then nothing of this commit was charged.
//
// It uncharges in the dead lane's name. Where another lane is in the middle of a change of the
// budget, that lane's end wakes the reaper.
func (r *reaper) finishCommit(b *block, i, id uint32) bool {
	rec := &r.d.recs[id]
	if rec.block.Load() != uint64(i) {
		return true
	}
	var err error
	done := b.committed.Load() == rec.target.Load()
	switch phase := rec.phase.Load(); {
	case phase == phaseCharged && done && !disabled("commit done"):
		rec.phase.Store(phaseIdle)
	case phase == phaseCharged && !done && !disabled("commit undo"):
		err = r.l.refund(b, id)
	case phase == phaseShrink && !disabled("shrink"):
		err = r.l.finishShrink(b, id)
	}
	return err == nil
}

// readers ends the gets of the dead: the message is dropped, never delivered twice. It returns the
// lanes for which it has to come back, because a living lane stands in the way. A message that
// waits for another dead reader's message comes round again.
func (r *reaper) readers() map[uint32]bool {
	for {
		pending, progress := make(map[uint32]bool), false
		for _, v := range r.views {
			v.each(func(s *slot, w slotWord) {
				if w.state() != slotReading || !r.dead.lane(w.lane()) || disabled("reader") {
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

// finishGet takes the references of a message in the name of the dead reader, whose bits go later.
//
// The dead reader, or a reaper before this one, has taken the blocks already that carry the dead
// reader's own stamp. Either way t goes down once for each (docs/memory.md, "The reaper"), and the
// message is counted as dropped, never delivered twice.
//
// Of a span, whose messages have no blocks, the first slot is given back last, as by its reader.
func (r *reaper) finishGet(v *Ring, s *slot, w slotWord) bool {
	id := w.lane()
	mine := stamp(id, kindGet)
	v.rest(s, w, func(s *slot, w slotWord) {
		if w.state() == slotFull && !disabled("span read") {
			s.word.Store(makeSlotWord(w.lap()+1, slotEmpty, 0))
		}
	})
	m := &Message{d: r.d}
	if err := m.readAgain(s); err != nil {
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
				if r.waitFor(b, bw) {
					return false
				}
				continue
			}
			if bw.transit() == 0 || b.w.CAS(bw, bw-tOne|mine) {
				break // none is garbage: there is nothing to take
			}
		}
	}
	r.d.hdr.dropped.Add(w.span())
	s.word.Store(makeSlotWord(w.lap()+1, slotEmpty, 0))
	for _, i := range m.order {
		if b := &r.d.blocks[i]; b.w.Load()&xoMask == mine {
			r.d.unstamp(b)
		}
	}
	return true
}

// waitFor asks to be woken when the stamp in w clears, and reports false if it has cleared already:
// the CAS is the second look, also where somebody else has set WAIT.
//
// A pass waits for no operation (docs/memory.md, "The reaper"): it notes the obstacle and goes on,
// because the living lane for which it would wait may itself wait for a stamp of the dead.
func (r *reaper) waitFor(b *block, w stateWord) bool {
	r.d.setBit(&r.d.hdr.xowait)
	if !w.stamped() || !b.w.CAS(w, w|waitBit) {
		return false
	}
	r.stuck = obstacle{b, w & xoMask}
	return true
}

// strayGets clears the stamps of gets whose slot has been given back already.
//
// A get's stamp may outlive its slot by some instructions: the slot is EMPTY then and t is right,
// so only the stamp is left. Lanes for which readers has to come back still need their stamps as
// evidence.
func (r *reaper) strayGets(pending map[uint32]bool) {
	for i := uint32(1); uint64(i) < r.d.count(); i++ {
		b := &r.d.blocks[i]
		if w := b.w.Load(); w.kind() == kindGet && r.dead.lane(w.lane()) && !pending[w.lane()] &&
			!disabled("stray get") {
			r.d.unstamp(b)
		}
	}
}
