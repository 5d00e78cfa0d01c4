package model

// reap performs the next step in s of reaper i. It returns false if the reaper must wait for a
// living participant. During step 7, the field pub of the run holds the participants that were
// dead at the last pass, for the wait in a finaliser.
func (c Ends) reap(s *endState, i int) bool {
	r, p := &s.r, &s.p[i]
	switch p.pc {
	case eIdle:
		*r = recovery{set: s.unreaped()}
		p.pc = eReapLook
	case eReapLook: // step 3
		c.examineRing(s, i)
	case eReapSlots:
		sl := &s.q[r.k]
		switch {
		case !c.mine(s):
		case sl.state == writing && r.has(sl.lane):
			*sl = endSlot{}
		case (sl.state == full || sl.state == reading) && r.has(sl.from) && sl.seq == s.p[sl.from-1].seq:
			r.pub |= 1 << (sl.from - 1)
		}
		p.nextStep(r, 2, eReapWords)
	case eReapWords: // step 4
		w := &s.w[r.k]
		if r.has(w.lane) && w.kind != kGet {
			if w.kind == kPut && r.pub>>(w.lane-1)&1 == 0 {
				w.t--
			}
			w.clear()
		}
		p.nextStep(r, endBlocks, eReapReading)
	case eReapReading: // step 5
		c.reapSlot(s, i)
	case eReapStamps: // step 6
		w := &s.w[r.k]
		if w.kind == kGet && r.has(w.lane) && r.pass>>(w.lane-1)&1 == 0 {
			w.clear()
		}
		if p.nextStep(r, endBlocks, eReapBits) {
			c.endPass(s, i, r.pass != 0)
		}
	case eReapWait:
		if s.unreaped() == r.set && !s.woken() {
			return false
		}
		*r = recovery{set: s.unreaped()}
		p.pc = eReapLook
	case eReapBits: // step 7
		b := r.k
		s.w[b].own &^= r.set
		p.nextStep(r, endBlocks, eReapEnd)
		p.push(frame{pc: fTry, b: b})
	case eReapEnd: // step 8
		for j := range threads {
			if r.set>>j&1 == 1 {
				s.p[j].life = reaped
			}
		}
		*r = recovery{}
		p.pc = eIdle
	}
	return true
}

// endPass completes a pass of reaper i. A nested pass returns to the finaliser. A first pass
// continues with step 7, or, if again is true, waits and starts again.
func (c Ends) endPass(s *endState, i int, again bool) {
	r := &s.r
	if s.nested {
		waits := r.waits
		dead := r.set
		*r = s.outer
		r.pub, r.waits = dead, waits
		s.outer, s.nested = recovery{}, false
		s.p[i].pc = eReapBits
		if r.k == 0 { // the frames belong to the last block
			s.p[i].pc = eReapEnd
		}
		return
	}
	if again {
		s.p[i].pc = eReapWait
		return
	}
	r.pub, r.waits = r.set, 0
}

// examineRing performs a step of the reaper i: it determines whether a dead participant holds the
// current ring and the ring stays allocated, and moves to the next ring. The bit of a
// participant that was about to notify the ring may have been set too late to keep it. A living
// lane that has stamped the ring FREE and not GONE does not know either. In that case the pass
// ends and starts again after the stamp is cleared.
func (c Ends) examineRing(s *endState, i int) {
	r, p := &s.r, &s.p[i]
	w := &s.w[r.k*2+1]
	stays := w.alloc && (w.own&r.set != 0 || c.Bug == NoHold)
	if stays && w.kind == kFree && !r.has(w.lane) {
		switch {
		case w.gone || c.Bug == FreeIsGone:
			stays = false
		case c.Bug != FreeStays:
			r.waits |= 1 << (r.k*2 + 1)
			r.k = 0
			c.endPass(s, i, true)
			return
		}
	}
	if stays {
		r.views |= 1 << r.k
	}
	p.nextStep(r, 2, eReapSlots)
}

// mine reports whether look has selected the ring of the reaper's current slot. The ring must
// then be allocated, or mine sets s.bad: a slot in memory that belongs to another block by now
// must not be read.
func (c Ends) mine(s *endState) bool {
	if s.r.views>>s.r.k&1 == 0 {
		return false
	}
	s.bad = s.bad || !s.w[s.r.k*2+1].alloc
	return true
}

// reapSlot performs a step of the reaper i: it removes the references from the current slot if a
// dead lane was reading it.
func (c Ends) reapSlot(s *endState, i int) {
	r, p := &s.r, &s.p[i]
	sl := &s.q[r.k]
	if !c.mine(s) || sl.state != reading || !r.has(sl.lane) {
		p.nextStep(r, 2, eReapStamps)
		return
	}
	dead := sl.lane
	taken := func(w *endWord) bool { return w.kind == kGet && w.lane == dead }
	switch {
	case s.all(sl.mask, taken):
		s.each(sl.mask, (*endWord).clear)
		*sl = endSlot{}
	case s.all(sl.mask, unstamped):
		s.each(sl.mask, func(w *endWord) { w.t--; w.stamp(dead, kGet) })
		return
	default:
		r.pass |= 1 << (dead - 1)
		r.waits |= sl.mask
	}
	p.nextStep(r, 2, eReapStamps)
}

// nextStep increments r.k. At n it resets it, moves p to the step then, and returns true.
func (p *endThread) nextStep(r *recovery, n uint8, then endPC) bool {
	if r.k++; r.k < n {
		return false
	}
	r.k = 0
	p.pc = then
	return true
}
