package model

import "math/bits"

// A pc is the next step of a participant.
type pc uint8

const (
	idle pc = iota
	allocCAS
	allocOwn
	allocClear
	takeOwn
	takeCAS
	putSeq
	putStamp
	putTail
	putClaim
	putHelp
	putHelpOwn
	putBody
	putDrop
	putFull
	putClear
	putUndo
	getHead
	getTake
	getHelp
	getHelpOwn
	getOwn
	getStamp
	getSeq
	getTakeOver
	getWait
	getEmpty
	getClear
	getOwnLate
	relBit
	peekOwn0
	peekOwn1
	freeStamp
	freeOwn0
	freeOwn1
	freeCAS
	freeClear
	freeAgain0
	freeAgain1
	sendHandle
	sendWait
	importOwn
	importCheck
	reapSlots
	reapWords
	reapPut
	reapReading
	reapReadingClear
	reapStamps
	reapWait
	reapBits0
	reapBits1
	reapEnd
)

var begin = [...]pc{Alloc: allocCAS, Take: takeOwn, Put: putSeq, Move: putSeq, Get: getHead, Release: relBit,
	Send: sendHandle, Import: importOwn, drain: getHead}

// step performs one step of participant i in s. It returns false if the step is not enabled.
func (c Lifetime) step(s *lifeState, i int) bool {
	p := &s.p[i]
	switch {
	case p.pc == idle:
		c.wake(s, i)
		return true
	case p.pc >= reapSlots:
		return c.reap(s, i)
	case p.pc >= sendHandle:
		return c.side(s, i)
	case p.pc >= relBit:
		c.free(s, i)
		return true
	case p.pc >= getHead:
		return c.get(s, i)
	case p.pc >= putSeq:
		return c.put(s, i)
	}
	c.alloc(s, i)
	return true
}

// wake starts the reaper i if a participant is dead, and the final drain by i otherwise.
func (c Lifetime) wake(s *lifeState, i int) {
	if set := s.unreaped(); set != 0 {
		s.r = recovery{set: set}
		s.p[i].pc = reapSlots
		if c.Bug == BitsFirst {
			s.p[i].pc = reapBits0
		}
		return
	}
	s.p[i].pc = getHead
}

func lane(i int) uint8 { return uint8(i + 1) }

// first returns the lowest block of mask, or block 0 if mask is empty. Stamps must be taken in
// ascending order; a mutation lets participant 0 take the highest block first.
func (c Lifetime) first(mask uint8, i int) uint8 {
	if mask == 0 {
		return 0
	}
	if c.Bug == AnyOrder && i == 0 {
		return uint8(bits.Len8(mask) - 1)
	}
	return uint8(bits.TrailingZeros8(mask))
}

func (c Lifetime) alloc(s *lifeState, i int) {
	p := &s.p[i]
	b := c.first(p.mask, i)
	w := &s.w[b]
	switch p.pc {
	case allocCAS:
		if w.alloc || w.kind != nobody {
			c.advance(s, i)
			return
		}
		w.alloc = true
		w.generation++
		w.stamp(lane(i), kAlloc)
		p.pc = allocOwn
	case allocOwn:
		c.acquire(s, i, b, w.generation)
		p.pc = allocClear
	case allocClear:
		w.clear()
		c.advance(s, i)
	case takeOwn: // the block looks free, so the CAS usually succeeds
		switch {
		case w.alloc && c.Bug != TakeUnowned || w.kind != nobody:
			c.advance(s, i)
		case c.Bug == TakeUnowned && p.h == 0:
			p.h, p.pc = 1, takeCAS
		default:
			c.acquire(s, i, b, tentative)
			if p.pc = takeCAS; p.h == 1 {
				p.gens[b] = w.generation
				c.advance(s, i)
			}
		}
	case takeCAS:
		if w.alloc || w.kind != nobody {
			c.leave(s, i, b)
			return
		}
		w.alloc = true
		w.generation++
		if c.Bug == TakeUnowned {
			p.pc = takeOwn
			return
		}
		p.gens[b] = w.generation
		c.advance(s, i)
	}
}

// leave ends the allocation by participant i of block b, which another participant has got.
func (c Lifetime) leave(s *lifeState, i int, b uint8) {
	p := &s.p[i]
	switch c.Bug {
	case TakeUnowned:
		c.advance(s, i)
	case TakeForgets:
		c.drop(s, i, b)
		c.advance(s, i)
	default:
		p.mask, p.pc = 1<<b, relBit
	}
}
