package model

// free performs the next step in s of participant i's release or try-free, for one block in its
// mask after another.
func (c Lifetime) free(s *lifeState, i int) {
	p := &s.p[i]
	b := c.first(p.mask, i)
	w := &s.w[b]
	switch p.pc {
	case relBit:
		p.count[b]--
		if p.count[b] > 0 {
			c.freed(s, i)
			return
		}
		p.gens[b] = 0
		s.own[b][i%2] &^= 1 << i
		p.pc = freeStamp
		if c.Peek {
			p.pc = peekOwn0
		}
	case peekOwn0:
		p.own = s.own[b][0] != 0
		p.pc = peekOwn1
	case peekOwn1:
		if p.own || s.own[b][1] != 0 {
			c.freed(s, i)
			return
		}
		p.pc = freeStamp
	case freeStamp:
		if !w.alloc || w.t != 0 || w.kind != nobody {
			c.freed(s, i)
			return
		}
		if c.Bug != NoFreeze {
			w.stamp(lane(i), kFree)
		}
		p.pc = freeOwn0
	case freeOwn0:
		p.own = s.own[b][0] != 0
		p.pc = freeOwn1
	case freeOwn1:
		p.own = p.own || s.own[b][1] != 0
		switch {
		case !p.own:
			p.pc = freeCAS
		case c.Bug == NoFreeze:
			c.freed(s, i)
		default:
			p.pc = freeClear
		}
	case freeCAS:
		if c.Bug == NoFreeze && (!w.alloc || w.t != 0 || w.kind != nobody) {
			c.freed(s, i)
			return
		}
		w.alloc = false
		w.gen ^= 1
		w.clear()
		c.freed(s, i)
	case freeClear:
		w.clear()
		if p.pc = freeAgain0; c.Bug == NoRecheck {
			c.freed(s, i)
		}
	case freeAgain0:
		p.own = s.own[b][0] != 0
		p.pc = freeAgain1
	case freeAgain1:
		if p.own || s.own[b][1] != 0 {
			c.freed(s, i)
			return
		}
		p.pc = freeStamp
	}
}

// freed moves participant i to its next reference to release, or to the step after the last
// release.
func (c Lifetime) freed(s *lifeState, i int) {
	p := &s.p[i]
	p.own = false
	b := c.first(p.mask, i)
	again := p.count[b] > 0 && (i >= workers || c.Programs[i][p.op].Do == Release)
	if !again {
		p.mask &^= 1 << b
	}
	switch {
	case i >= workers && s.r.set != 0:
		p.pc = reapBits0
		c.nextBlock(s, i, c.afterBits())
	case p.mask != 0:
		p.pc = relBit
	case i == closer:
		p.pc = getHead
	default:
		c.advance(s, i)
	}
}

// side performs the next step in s of worker i's send or import by the side channel. It returns
// false if the step is not enabled. The handle is for the lowest block in the worker's mask.
func (c Lifetime) side(s *lifeState, i int) bool {
	p := &s.p[i]
	b := c.first(p.mask, i)
	w := &s.w[b]
	switch p.pc {
	case sendHandle:
		s.side, s.sideGen = 1, p.gens[b]
		p.pc = sendWait
	case sendWait: // wait until the handle is answered or the importer is gone
		if s.side == 1 && c.importing(s) {
			return false
		}
		c.advance(s, i)
	case importOwn:
		if s.side == 0 {
			if c.sending(s) {
				return false
			}
			c.advance(s, i)
			return true
		}
		c.acquire(s, i, b, tentative)
		p.pc = importCheck
	case importCheck:
		if w.kind == kFree && c.Bug != ImportBlind {
			return false
		}
		if w.is(s.sideGen) {
			p.gens[b] = s.sideGen
			s.side = 2
			c.advance(s, i)
			return true
		}
		s.side = 3
		p.pc = relBit
	}
	return true
}

func (c Lifetime) importing(s *lifeState) bool { return c.ahead(s, Import) }
func (c Lifetime) sending(s *lifeState) bool   { return c.ahead(s, Send) }

// ahead reports whether a living worker still has to perform the operation do.
func (c Lifetime) ahead(s *lifeState, do Verb) bool {
	for i := range workers {
		for op := int(s.p[i].op); s.p[i].lives() && op < len(c.Programs[i]); op++ {
			if c.Programs[i][op].Do == do {
				return true
			}
		}
	}
	return false
}
