package model

// acquire counts a reference of participant i to block b, and sets its own bit.
func (c Lifetime) acquire(s *lifeState, i int, b, generation uint8) {
	p := &s.p[i]
	p.count[b]++
	p.gens[b] = generation
	s.own[b][i%2] |= 1 << i
}

func (c Lifetime) put(s *lifeState, i int) bool {
	p := &s.p[i]
	sl := &s.q[p.h%slots]
	b := c.first(p.mask, i)
	w := &s.w[b]
	done := p.mask &^ (1 << b)
	switch p.pc {
	case putSeq:
		p.seq++
		if c.Bug == NarrowOpseq {
			p.seq &= 1
		}
		p.pc = putStamp
	case putStamp:
		if w.kind != nobody {
			return false
		}
		w.t++
		w.stamp(lane(i), kPut)
		if p.mask = done; done != 0 {
			break
		}
		if p.pc = putTail; c.Bug == DropEarly && c.moves(s, i) {
			p.mask, p.pc = c.Programs[i][p.op].Blocks, putDrop
		}
	case putTail:
		p.h = s.tail
		p.pc = putClaim
	case putClaim:
		c.claim(s, i)
	case putHelp, putHelpOwn:
		if s.tail == p.h {
			s.tail++
		}
		p.pc = putTail + (p.pc-putHelp)*(putBody-putTail)
	case putBody:
		p.mask = c.Programs[i][p.op].Blocks
		sl.from, sl.seq, sl.mask, sl.gens = lane(i), p.seq, p.mask, p.gens
		if p.pc = c.afterBody(); c.moves(s, i) && c.Bug != DropEarly {
			p.pc = putDrop
		}
	case putDrop:
		c.drop(s, i, b)
		if p.mask = done; done == 0 {
			p.mask, p.pc = c.Programs[i][p.op].Blocks, c.afterBody()
			if c.Bug == DropEarly {
				p.mask, p.pc = 0, putTail
			}
		}
	case putFull:
		sl.state = full
		p.pc = putClear
		if c.Bug == ClearBeforeFull {
			c.advance(s, i)
		}
	case putClear:
		if w.kind == kPut && w.lane == lane(i) || c.Bug == ClearTaken {
			w.clear()
		}
		if p.mask = done; done != 0 {
			break
		}
		if c.Bug == ClearBeforeFull {
			p.pc = putFull
			break
		}
		c.advance(s, i)
	case putUndo:
		if w.t--; c.Bug == EndStamped {
			w.t++
		}
		w.clear()
		if c.Bug == DropEarly && c.moves(s, i) {
			p.count[b]++ // the caller still holds the block, against its bit
		}
		if p.mask = done; done == 0 {
			c.advance(s, i)
		}
	}
	return true
}

// giveUp ends a worker's wait for a stamp, as a step in s. A put removes its own stamps. A get
// cannot, because its caller has the message and may release a block before the get has ended,
// which then acquires it again. giveUp returns false if worker i does not wait.
func (c Lifetime) giveUp(s *lifeState, i int) bool {
	p := &s.p[i]
	b := c.first(p.mask, i)
	if s.w[b].kind == nobody {
		return false
	}
	switch p.pc {
	case putStamp:
		if int(s.ends) >= c.Ends {
			return false
		}
		s.ends++
		if p.mask = c.Programs[i][p.op].Blocks &^ p.mask; p.mask == 0 {
			c.advance(s, i)
		} else {
			p.pc = putUndo
		}
	case getStamp, getWait:
		c.drop(s, i, b)
		if p.pc = getOwn; c.Bug == LateUnheld {
			p.pc = getStamp
		}
	default:
		return false
	}
	return true
}

func (c Lifetime) claim(s *lifeState, i int) {
	p := &s.p[i]
	sl := &s.q[p.h%slots]
	lap := p.h / slots
	switch {
	case sl.lap == lap && sl.state == empty:
		sl.state, sl.lane = writing, lane(i)
		p.pc = putHelpOwn
	case sl.lap >= lap: // another participant has this ticket
		p.pc = putHelp
	default: // the message of the previous lap is still there: full
		p.mask = c.Programs[i][p.op].Blocks
		p.pc = putUndo
	}
}

// moves reports whether the put of worker i gives up its own reference.
func (c Lifetime) moves(s *lifeState, i int) bool { return c.Programs[i][s.p[i].op].Do == Move }

// afterBody returns the step of a put that follows the body of its message and the drop of the
// moved blocks.
func (c Lifetime) afterBody() pc {
	if c.Bug == ClearBeforeFull {
		return putClear
	}
	return putFull
}

// drop removes a reference of participant i to block b without a try-free, because the message
// holds the block.
func (c Lifetime) drop(s *lifeState, i int, b uint8) {
	p := &s.p[i]
	if p.count[b]--; p.count[b] > 0 {
		return
	}
	s.own[b][i%2] &^= 1 << i
	if c.Bug != DropEarly { // still needed to write the block into the slot
		p.gens[b] = 0
	}
}
