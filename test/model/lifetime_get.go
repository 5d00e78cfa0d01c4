package model

func (c Lifetime) get(s *lifeState, i int) bool {
	p := &s.p[i]
	sl := &s.q[p.h%slots]
	b := c.first(p.mask, i)
	w := &s.w[b]
	left := p.mask &^ (1 << b)
	switch p.pc {
	case getHead:
		p.h = s.head
		p.pc = getTake
	case getTake:
		return c.examineSlot(s, i)
	case getHelp:
		s.helpHead(p.h)
		p.pc = getHead
	case getHelpOwn:
		s.helpHead(p.h)
		p.mask = sl.mask
		p.pc = getOwn
		if c.Bug == AcquireAfter {
			p.pc = getStamp
		}
	case getOwn:
		c.acquire(s, i, b, sl.gens[b])
		p.pc = getStamp
	case getStamp:
		switch {
		case w.kind == nobody || c.Bug == NoPutWait && w.kind == kPut:
			c.receive(s, i)
		case w.kind == kPut && w.lane == sl.from && (w.t == 1 || c.Bug == TakeCounted):
			p.saw, p.pc = w.t, getSeq
		default:
			return false
		}
	case getSeq:
		if p.pc = getTakeOver; s.p[sl.from-1].seq != sl.seq && !c.AnySeq {
			p.pc = getWait
		}
	case getTakeOver:
		if *w != (word{alloc: true, gen: w.gen, t: p.saw, lane: sl.from, kind: kPut, generation: w.generation}) {
			p.saw, p.pc = 0, getStamp
			break
		}
		c.receive(s, i)
	case getWait:
		if w.kind != nobody {
			return false
		}
		c.receive(s, i)
	case getEmpty:
		p.mask = sl.mask
		p.pc = getClear
		if c.Bug == AcquireAfter {
			p.gens = sl.gens
		}
		*sl = slot{lap: sl.lap + 1}
	case getClear:
		if s.w[b].lane == lane(i) {
			s.w[b].clear()
		}
		if c.Bug == AcquireAfter {
			p.pc = getOwnLate
			break
		}
		c.got(s, i, left)
	case getOwnLate:
		c.acquire(s, i, b, p.gens[b])
		p.pc = getClear
		c.got(s, i, left)
	}
	return true
}

// receive performs a step of participant i's get: it moves the message's reference to the lowest
// block in the mask to the participant, and selects the next block.
func (c Lifetime) receive(s *lifeState, i int) {
	p := &s.p[i]
	b := c.first(p.mask, i)
	s.w[b].t--
	s.w[b].stamp(lane(i), kGet)
	p.mask &^= 1 << b
	switch p.saw = 0; {
	case p.mask == 0:
		p.pc = getEmpty
	case c.Bug == AcquireAfter:
		p.pc = getStamp
	default:
		p.pc = getOwn
	}
}

func (s *lifeState) helpHead(h uint8) {
	if s.head == h {
		s.head++
	}
}

// got sets the blocks that participant i's get has left. If there are none, it completes the
// get. The closer then releases its blocks and continues.
func (c Lifetime) got(s *lifeState, i int, left uint8) {
	p := &s.p[i]
	if p.mask = left; left != 0 {
		return
	}
	if i == closer {
		p.mask, p.pc = p.held(), relBit
		return
	}
	c.advance(s, i)
}

// examineSlot performs a step of participant i's get: it examines the slot of the ticket. It
// returns false if a put is still writing the slot.
func (c Lifetime) examineSlot(s *lifeState, i int) bool {
	p := &s.p[i]
	sl := &s.q[p.h%slots]
	lap := p.h / slots
	switch {
	case sl.lap > lap, sl.state == reading && (sl.lap == lap || c.Bug == HelpAnyLap):
		p.pc = getHelp
	case sl.lap < lap: // a reader still has the message of the previous lap: empty
		c.dry(s, i)
	case sl.state == full:
		sl.state, sl.lane = reading, lane(i)
		p.pc = getHelpOwn
	case sl.state == skip:
		*sl = slot{lap: lap + 1}
		p.pc = getHelp
	case sl.state == writing:
		return false
	default:
		c.dry(s, i)
	}
	return true
}

// dry completes the get of participant i on an empty ring. The closer has then drained it.
func (c Lifetime) dry(s *lifeState, i int) {
	c.advance(s, i)
	if i == closer {
		s.p[i].op = 1
	}
}
