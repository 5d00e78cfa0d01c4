package model

// reap does a step of the reaper. During step 7 the field pub of the run holds the participants
// that were dead at the last pass, for the wait in a finaliser.
func (c Ends) reap(s *endState, i int) bool {
	r, p := &s.r, &s.p[i]
	switch p.pc {
	case eIdle:
		*r = recovery{set: s.unreaped()}
		p.pc = eReapSlots
	case eReapSlots: // step 3
		sl := &s.q[r.k]
		if sl.state == writing && r.has(sl.lane) && c.mine(s) {
			*sl = endSlot{}
		}
		if (sl.state == full || sl.state == reading) && r.has(sl.from) && sl.seq == s.p[sl.from-1].seq {
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
			c.passed(s, i)
		}
	case eReapWait:
		if s.unreaped() == r.set && !s.woken() {
			return false
		}
		*r = recovery{set: s.unreaped()}
		p.pc = eReapSlots
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

// passed ends a pass. A nested pass goes back to the finaliser. A first pass goes on to step 7 or
// waits.
func (c Ends) passed(s *endState, i int) {
	r := &s.r
	if s.nested {
		waits := r.waits
		dead := r.set
		*r = s.outer
		r.pub, r.waits = dead, waits
		s.outer, s.nested = recovery{}, false
		s.p[i].pc = eReapBits
		if r.k == 0 { // the frames are those of the last block
			s.p[i].pc = eReapEnd
		}
		return
	}
	if r.pass != 0 {
		s.p[i].pc = eReapWait
		return
	}
	r.pub, r.waits = r.set, 0
}

// mine reports whether a dead participant holds the ring of the slot at hand.
func (c Ends) mine(s *endState) bool {
	w := &s.w[s.r.k*2+1]
	return w.alloc && (w.own&s.r.set != 0 || c.Bug == NoHold)
}

// reapSlot takes the references out of a slot that a dead lane was reading.
func (c Ends) reapSlot(s *endState, i int) {
	r, p := &s.r, &s.p[i]
	sl := &s.q[r.k]
	if sl.state != reading || !r.has(sl.lane) || !c.mine(s) {
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

// nextStep counts k up to n, and then goes on to the next step of the reaper.
func (p *endThread) nextStep(r *recovery, n uint8, then endPC) bool {
	if r.k++; r.k < n {
		return false
	}
	r.k = 0
	p.pc = then
	return true
}
