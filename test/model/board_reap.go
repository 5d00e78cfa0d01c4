package model

// reap performs the next step in s of reaper i: one slot or one block. It returns false if the
// reaper must wait for a living participant.
func (c Board) reap(s *boardState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case dBegin:
		p.set, p.pub, p.waits, p.k, p.pc = s.unreaped(), 0, false, 0, dReapSlots
	case dReapSlots:
		c.reapSlot(s, p)
		p.advance(boards*boardSlots, dReapWords)
	case dReapWords:
		if w := &s.w[p.k]; p.reaps(w.lane) {
			switch {
			case w.kind == kPut && p.pub>>(w.lane-1)&1 == 0:
				w.t--
				w.clear()
			case w.kind == kPut, w.kind == kFree:
				w.clear()
			}
		}
		p.advance(boardWords, dReapReading)
	case dReapReading:
		c.reapReading(s, p)
		p.advance(boards*boardSlots, dReapGets)
	case dReapGets:
		if w := &s.w[p.k]; w.kind == kGet && p.reaps(w.lane) && !p.waits {
			w.clear()
		}
		p.advance(boardWords, dReapWait)
	case dReapWait:
		if p.pc = dReapBits; p.waits {
			if !c.unblocked(s, p) && s.unreaped() == p.set {
				return false
			}
			p.pc = dBegin
		}
	case dReapBits:
		s.w[p.k].own &^= p.set
		p.advance(boardWords, dReapFree)
	case dReapFree:
		if w := &s.w[p.k]; w.alloc && w.t == 0 && w.own == 0 && w.kind == nobody {
			s.release(p.k)
		}
		if p.advance(boardWords, dBegin); p.pc != dBegin {
			break
		}
		for d := range threads {
			if p.set>>d&1 == 1 {
				s.p[d] = boardThread{process: process{reaped}}
			}
		}
		p.set, p.pub = 0, 0
	}
	return true
}

func (p *boardThread) reaps(lane uint8) bool { return lane != 0 && p.set>>(lane-1)&1 == 1 }

// advance moves to the next of n items, or to pc after the last one.
func (p *boardThread) advance(n uint8, pc boardPC) {
	if p.k++; p.k == n {
		p.k, p.pc = 0, pc
	}
}

// dead returns slot p.k of all boards if a participant that p reaps holds its board, and nil
// otherwise.
func (p *boardThread) dead(s *boardState) *boardSlot {
	if b := p.k / boardSlots; s.w[b].own&p.set != 0 {
		return &s.q[b][p.k%boardSlots]
	}
	return nil
}

func (c Board) reapSlot(s *boardState, p *boardThread) {
	sl := p.dead(s)
	switch {
	case sl == nil:
	case sl.state == writing && p.reaps(sl.lane) && c.Bug != BoardNoSkip:
		*sl = boardSlot{state: skip, lap: sl.lap}
	case (sl.state == full || sl.state == reading) && p.reaps(sl.from) && sl.seq == s.p[sl.from-1].seq:
		p.pub |= 1 << (sl.from - 1)
	}
}

// reapReading completes a dead participant's get in slot p.k, if there is one. If a living
// participant has stamped a block, it sets p.waits instead.
func (c Board) reapReading(s *boardState, p *boardThread) {
	sl := p.dead(s)
	if sl == nil || sl.state != reading || !p.reaps(sl.lane) {
		return
	}
	order := c.order(sl.own, sl.data)
	for _, b := range order {
		if w := &s.w[b]; w.kind != nobody && (w.kind != kGet || w.lane != sl.lane) {
			p.waits = true
			return
		}
	}
	for _, b := range order {
		if w := &s.w[b]; w.kind == nobody {
			w.t--
		} else {
			w.clear()
		}
	}
	*sl = boardSlot{lap: sl.lap + 1}
}

// unblocked reports whether a slot that the reaper p has skipped can now be completed.
func (c Board) unblocked(s *boardState, p *boardThread) bool {
	for b := range s.q {
		for _, sl := range s.q[b] {
			if sl.state != reading || !p.reaps(sl.lane) {
				continue
			}
			free := true
			for _, x := range c.order(sl.own, sl.data) {
				w := &s.w[x]
				free = free && (w.kind == nobody || w.kind == kGet && w.lane == sl.lane)
			}
			if free {
				return true
			}
		}
	}
	return false
}
