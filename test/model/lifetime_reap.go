package model

// reap performs the next step in s of reaper i, as in docs/memory.md. It returns false if the
// reaper must wait. Step 1, which collects the dead, was performed when the run began.
func (c Lifetime) reap(s *lifeState, i int) bool {
	r, p := &s.r, &s.p[i]
	switch p.pc {
	case reapSlots: // step 3
		sl := &s.q[r.k]
		if sl.state == writing && r.has(sl.lane) {
			if sl.state, sl.lane = skip, 0; c.NoSkip {
				*sl = slot{lap: sl.lap + 1}
			}
		}
		if (sl.state == full || sl.state == reading) && r.has(sl.from) && sl.seq == s.p[sl.from-1].seq {
			r.pub |= 1 << (sl.from - 1)
		}
		c.nextSlot(s, i, reapWords)
	case reapWords: // step 4
		if w := &s.w[r.k]; w.kind == kPut && r.has(w.lane) {
			p.h, p.pc = w.lane, reapPut // the next step depends on more than the word
			break
		}
		c.reapWord(s, &s.w[r.k])
		c.nextBlock(s, i, reapReading)
	case reapPut:
		c.reapPut(s, &s.w[r.k], p.h)
		p.h, p.pc = 0, reapWords
		c.nextBlock(s, i, reapReading)
	case reapReading: // step 5
		return c.reapSlot(s, i)
	case reapReadingClear:
		b := c.first(p.mask, i)
		s.w[b].clear()
		if p.mask &^= 1 << b; p.mask == 0 {
			p.pc = reapReading
			c.nextSlot(s, i, reapStamps)
		}
	case reapStamps: // step 6
		w := &s.w[r.k]
		if w.kind == kGet && r.has(w.lane) && (r.pass>>(w.lane-1)&1 == 0 || c.Bug == ClearPassed) {
			w.clear()
		}
		then := c.afterStamps()
		if r.pass != 0 {
			then = reapWait
		}
		c.nextBlock(s, i, then)
		if p.pc == reapBits0 && r.k == 0 && c.Bug == ReuseEarly {
			for j := range workers {
				if r.set>>j&1 == 1 {
					c.vacate(s, j)
				}
			}
		}
	case reapWait: // waits for a living lane to clear its xo, then makes a new pass
		return c.woken(s, i)
	case reapBits0: // step 7
		s.own[r.k][0] &^= r.set
		p.pc = reapBits1
	case reapBits1:
		s.own[r.k][1] &^= r.set
		if c.Bug == NoReaperFree {
			p.pc = reapBits0
			c.nextBlock(s, i, c.afterBits())
			break
		}
		p.mask, p.pc = 1<<r.k, freeStamp
	case reapEnd: // step 8
		for j := range threads {
			if r.set>>j&1 == 1 && s.p[j].life == killed {
				c.vacate(s, j)
			}
		}
		p.pc, s.r = idle, recovery{}
	}
	return true
}

// vacate frees the seat of participant j, and reuses it if the configuration says so. The opseq of
// the lane must continue.
func (c Lifetime) vacate(s *lifeState, j int) {
	p := &s.p[j]
	op := p.op
	*p = thread{process: process{reaped}, seq: p.seq}
	if !c.Reuse || j >= workers {
		return
	}
	p.life, p.op = alive, op
	if c.Bug == OpseqReset {
		p.seq = 0
	}
	c.advance(s, j)
}

// afterStamps returns the step after steps 3–6, and afterBits the step after step 7. One
// mutation reverses their order.
func (c Lifetime) afterStamps() pc {
	if c.Bug == BitsFirst {
		return reapEnd
	}
	return reapBits0
}

func (c Lifetime) afterBits() pc {
	if c.Bug == BitsFirst {
		return reapSlots
	}
	return reapEnd
}

func (r *recovery) has(lane uint8) bool { return lane != 0 && r.set>>(lane-1)&1 == 1 }

// reapWord ends the operation of a dead lane on the block with word w. It leaves a get, which
// ends in step 6, and is not called for a put, which ends in reapPut.
func (c Lifetime) reapWord(s *lifeState, w *word) {
	if w.kind != nobody && w.kind != kGet && s.r.has(w.lane) {
		w.clear()
	}
}

// reapPut ends the put of a dead lane on the block with word w, based on the evidence. A
// published message may already have a reader with its own stamp on the block. An unpublished
// message cannot have a reader.
func (c Lifetime) reapPut(s *lifeState, w *word, lane uint8) {
	published := s.r.pub>>(lane-1)&1 == 1
	switch {
	case (!published || c.Bug == AlwaysUndo) && c.Bug != NeverUndo:
		w.t--
		w.clear()
	case w.kind == kPut && w.lane == lane || c.Bug == ReapTaken:
		w.clear()
	}
}

// reapSlot performs a step of reaper i: it removes the references from a slot that a dead lane
// was reading, on behalf of the lane. It returns false if it must wait, as one mutation does.
func (c Lifetime) reapSlot(s *lifeState, i int) bool {
	r, p := &s.r, &s.p[i]
	sl := &s.q[r.k]
	if sl.state != reading || !r.has(sl.lane) {
		c.nextSlot(s, i, reapStamps)
		return true
	}
	for b := range blocks {
		w := &s.w[b]
		mine := w.kind == kGet && w.lane == sl.lane
		switch {
		case sl.mask>>b&1 == 0, mine && c.Bug != DropAll, c.Bug == NoDrop:
			continue
		case w.kind == nobody || mine:
			w.t--
			w.stamp(sl.lane, kGet)
			if c.Bug == DropAll {
				continue
			}
			return true
		case c.Bug == WaitInStep5:
			return false
		}
		r.pass |= 1 << (sl.lane - 1)
		r.waits |= 1 << b
		c.nextSlot(s, i, reapStamps)
		return true
	}
	p.mask, p.pc = sl.mask, reapReadingClear
	*sl = slot{lap: sl.lap + 1}
	return true
}

// woken lets reaper i start a new pass when one of the awaited words is clear, or when another
// participant has died. It returns false if neither has happened.
func (c Lifetime) woken(s *lifeState, i int) bool {
	ring := s.unreaped() != s.r.set && c.Bug != DeafReaper
	for b := range blocks {
		ring = ring || s.r.waits>>b&1 == 1 && s.w[b].kind == nobody
	}
	if ring {
		s.r = recovery{set: s.unreaped()}
		s.p[i].pc = reapSlots
	}
	return ring
}

func (c Lifetime) nextSlot(s *lifeState, i int, then pc) {
	if s.r.k++; s.r.k == slots {
		s.r.k = 0
		s.p[i].pc = then
	}
}

func (c Lifetime) nextBlock(s *lifeState, i int, then pc) {
	if s.r.k++; s.r.k == blocks {
		s.r.k = 0
		s.p[i].pc = then
	}
}
