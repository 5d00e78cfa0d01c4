package model

import "fmt"

// The local count model: three goroutines of one process share the owner bit of the process for one
// block through a count that is protected by the entry's lock. Goroutine 0 holds a reference, and 1
// and 2 receive one each. Participant 3 is another process, which holds the block and releases it.
// There are no kills, because a process dies with all of its goroutines.

const counters = 4

type countPC uint8

const (
	cStart countPC = iota
	cLock
	cCount
	cBit
	cUnlock
	cStamp
	cClear
	cDrop
	cDropLock
	cDropCount
	cDropBit
	cDropUnlock
	cTry
	cOwn
	cFree
	cBack
	cAgain
	cEnd
)

type counter struct {
	pc    countPC
	n     uint8 // the count as seen by this goroutine
	holds bool
}

type countState struct {
	alloc      bool
	t, lane    uint8
	own        uint8 // bit 0: the process with the goroutines; bit 1: the other process
	count      uint8
	lock       uint8
	goroutines [counters]counter
}

// A LocalCount configures the local count model: the goroutines of a process share its owner
// bit. Bug is a mutation that must be detected, or "".
type LocalCount struct{ Bug string }

// Mutations of the local count model.
const (
	CountUnlocked = "count and bit change without the lock"
	CountLate     = "get raises the count after t-1"
	UnlockEarly   = "the lock is let go between count and bit"
	ClearAny      = "a drop clears the bit whatever count it leaves"
	LastQuiet     = "a participant that drops the last reference does not try to free"
	OwnUnread     = "try-free does not read own under its stamp"
)

// Model returns the transition system of c, for [Explore].
func (c LocalCount) Model() Model[countState] {
	s := countState{alloc: true, t: 2, own: 3, count: 1}
	for i := range s.goroutines {
		g := &s.goroutines[i]
		if g.pc = cLock; i == 0 || i == 3 {
			g.pc, g.holds = cDrop, true
		} else if c.Bug == CountLate {
			g.pc = cStamp
		}
	}
	return Model[countState]{Init: s, Steps: c.steps, Events: func(countState, func(countState)) {},
		Check: c.check, Done: c.done}
}

func (c LocalCount) steps(s countState, emit func(countState)) {
	for i := range s.goroutines {
		if n := s; c.step(&n, i) {
			emit(n)
		}
	}
}

func (c LocalCount) step(s *countState, i int) bool {
	g := &s.goroutines[i]
	switch g.pc {
	case cLock, cDropLock:
		if s.lock != 0 && c.Bug != CountUnlocked {
			return false
		}
		s.lock = lane(i)
		g.pc++
	case cCount:
		s.count++
		g.n = s.count
		c.early(s)
		g.pc = cBit
	case cBit:
		if g.n == 1 {
			s.own |= 1
		}
		g.pc = cUnlock
	case cUnlock:
		c.unlock(s, i)
		if g.pc = cStamp; c.Bug == CountLate {
			g.holds, g.pc = true, cDrop
		}
	case cStamp:
		if s.lane != 0 {
			return false
		}
		s.t--
		s.lane = lane(i)
		g.pc = cClear
	case cClear:
		s.lane = 0
		if g.holds, g.pc = true, cDrop; c.Bug == CountLate {
			g.holds, g.pc = false, cLock
		}
	case cDrop:
		g.holds = false
		if g.pc = cDropLock; i == 3 {
			s.own &^= 2
			g.pc = cTry
		}
	case cDropCount:
		s.count--
		g.n = s.count
		c.early(s)
		g.pc = cDropBit
	case cDropBit:
		if g.n == 0 || c.Bug == ClearAny {
			s.own &^= 1
		}
		g.pc = cDropUnlock
	case cDropUnlock:
		c.unlock(s, i)
		if g.pc = cEnd; g.n == 0 && c.Bug != LastQuiet {
			g.pc = cTry
		}
	default:
		return c.tryFree(s, i)
	}
	return true
}

func (c LocalCount) early(s *countState) {
	if c.Bug == UnlockEarly {
		s.lock = 0
	}
}

func (c LocalCount) unlock(s *countState, i int) {
	if s.lock == lane(i) {
		s.lock = 0
	}
}

func (c LocalCount) tryFree(s *countState, i int) bool {
	g := &s.goroutines[i]
	switch g.pc {
	case cTry:
		if g.pc = cEnd; s.alloc && s.t == 0 && s.lane == 0 {
			s.lane = lane(i)
			g.pc = cOwn
		}
	case cOwn:
		if g.pc = cFree; s.own != 0 && c.Bug != OwnUnread {
			g.pc = cBack
		}
	case cFree:
		s.alloc, s.lane = false, 0
		g.pc = cEnd
	case cBack:
		s.lane = 0
		g.pc = cAgain
	case cAgain:
		if g.pc = cTry; s.own != 0 {
			g.pc = cEnd
		}
	default:
		return false
	}
	return true
}

func (c LocalCount) check(s *countState) error {
	for i := range s.goroutines {
		if s.goroutines[i].holds && !s.alloc {
			return fmt.Errorf("use after free: goroutine %d", i)
		}
	}
	return nil
}

func (c LocalCount) done(s *countState) error {
	if s.alloc || s.own != 0 || s.t != 0 || s.lane != 0 || s.count != 0 {
		return fmt.Errorf("leak: %+v", *s)
	}
	return nil
}
