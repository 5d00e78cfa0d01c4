package model

import "math/bits"

func (p *endThread) push(f frame) {
	p.stack[p.sp] = f
	p.sp++
	p.popReleases()
}

func (p *endThread) pop() {
	p.sp--
	p.stack[p.sp] = frame{}
	p.popReleases()
}

// popReleases removes the releases that are complete from the top of the stack.
func (p *endThread) popReleases() {
	for p.sp > 0 && p.stack[p.sp-1].pc == fRelease && p.stack[p.sp-1].mask == 0 {
		p.sp--
		p.stack[p.sp] = frame{}
	}
}

// stepFrame performs the next step in s of the frame on top of participant i's stack: of a release,
// a finaliser or a get. It returns false if the step is not enabled.
func (c Ends) stepFrame(s *endState, i int) bool {
	p := &s.p[i]
	f := &p.stack[p.sp-1]
	w := &s.w[f.b]
	me := uint8(1) << i
	switch f.pc {
	case fRelease:
		b := uint8(bits.TrailingZeros8(f.mask))
		f.mask &^= 1 << b
		p.count[b]--
		if p.count[b] == 0 {
			s.w[b].own &^= me
			p.push(frame{pc: fTry, b: b})
			break
		}
		p.popReleases()
	case fTry:
		if !w.alloc || w.t != 0 || w.kind != nobody {
			p.pop()
			break
		}
		w.stamp(lane(i), kFree)
		w.gone = c.Bug == GoneEarly
		f.pc = fOwn
	case fOwn:
		switch {
		case w.own != 0:
			f.pc = fClear
		case f.b == token || f.b&1 == 1:
			f.pc = fGone
		default:
			f.pc = fFree
		}
	case fGone:
		w.gone = true
		switch {
		case f.b == token && !(c.Bug == NoRefinal && i >= workers):
			f.pc = fImport
		case f.b&1 == 1 && c.Bug == NoDrain:
			f.pc = fFree
		case f.b&1 == 1 && c.Bug == NoHold:
			f.pc = fDrain
		case f.b&1 == 1:
			f.pc = fHold
		default:
			f.pc = fFree
		}
	case fHold:
		p.count[f.b]++
		w.own |= me
		f.pc = fDrain
	case fDrain:
		if s.slotOf(f.b).state == full {
			p.push(frame{pc: fTake, b: f.b})
			break
		}
		f.pc = fUnhold
	case fUnhold:
		if p.count[f.b]--; p.count[f.b] == 0 {
			w.own &^= me
		}
		f.pc = fFree
	case fImport:
		p.count[ringBlock]++
		s.w[ringBlock].own |= me
		if f.pc = fImportCheck; c.Bug == TokenBlind {
			p.count[ringBlock]--
			if p.count[ringBlock] == 0 {
				s.w[ringBlock].own &^= me
			}
			f.pc = fTell
		}
	case fImportCheck:
		ring := &s.w[ringBlock]
		if ring.kind == kFree && (!ring.gone || c.Bug == NoGone) {
			return c.awaitStamp(s, i)
		}
		if f.pc = fTell; !ring.alloc || ring.kind == kFree {
			f.pc = fFree
			p.push(frame{pc: fRelease, mask: Ring})
		}
	case fTell:
		s.bad = s.bad || !s.w[ringBlock].alloc
		s.noSenders = true
		if f.pc = fFree; c.Bug != TokenBlind {
			p.push(frame{pc: fRelease, mask: Ring})
		}
	case fFree:
		c.freeBlock(s, f.b)
		p.pop()
	case fClear:
		w.clear()
		f.pc = fAgain
	case fAgain:
		if w.own != 0 {
			p.pop()
			break
		}
		f.pc = fTry
	default:
		return c.get(s, i, f)
	}
	return true
}

// freeBlock is the CAS that frees a block. From then on, the bytes of a ring may belong to another
// block.
func (c Ends) freeBlock(s *endState, b uint8) {
	s.w[b].alloc = false
	s.w[b].clear()
	if b&1 == 1 {
		*s.slotOf(b) = endSlot{}
	}
	if b == ringBlock {
		s.noSenders = false
	}
}

// get performs the next step in s of a get from the ring f.b, either by a user, which may keep
// the blocks, or by a finaliser. f must be the top frame of participant i. It returns false if
// the step is not enabled.
func (c Ends) get(s *endState, i int, f *frame) bool {
	p := &s.p[i]
	sl := s.slotOf(f.b)
	switch f.pc {
	case fTake:
		if sl.state != full {
			p.pop()
			break
		}
		sl.state, sl.lane = reading, lane(i)
		f.mask = sl.mask
		f.pc = fAcquire
	case fAcquire:
		for m := f.mask; m != 0; m &= m - 1 {
			p.count[bits.TrailingZeros8(m)]++
		}
		s.each(f.mask, func(w *endWord) { w.own |= 1 << i })
		f.pc = fStamp
	case fStamp:
		if !s.all(f.mask, unstamped) {
			return c.awaitStamp(s, i)
		}
		s.each(f.mask, func(w *endWord) { w.t--; w.stamp(lane(i), kGet) })
		f.pc = fEmpty
	case fEmpty:
		*sl = endSlot{}
		f.pc = fGot
	case fGot:
		s.each(f.mask, (*endWord).clear)
		if f.keep {
			p.pop()
			break
		}
		f.pc = fRelease
	}
	return true
}

// awaitStamp is the step of a participant that waits until the stamp of a block, xo in
// docs/memory.md, is cleared. It returns false, because the step is not enabled. But a reaper,
// which waits in a finaliser of step 7 of a recovery, makes a nested pass if a participant has died
// since.
func (c Ends) awaitStamp(s *endState, i int) bool {
	if i < workers || c.Bug == NoNestedPass || s.unreaped() == s.r.pub && !s.woken() {
		return false
	}
	s.outer, s.nested = s.r, true
	s.r = recovery{set: s.unreaped()}
	s.p[i].pc = eReapLook
	return true
}

func (s *endState) woken() bool {
	for b := range endBlocks {
		if w := &s.w[b]; s.r.waits>>b&1 == 1 && (w.kind == nobody || w.gone) {
			return true
		}
	}
	return false
}
