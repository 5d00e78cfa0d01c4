package model

import "fmt"

// The xo wait model: three participants stamp and clear two words, one after another. They wait by
// the WAIT bit and a single bitmap for all words. The reaper clears the stamps of killed holders
// and then wakes all participants. Invariant: no living participant may wait forever.

type xoPC uint8

const (
	xTry xoPC = iota
	xBit
	xWait
	xParked
	xClear
	xTake
	xWake
	xEnd
)

type xoWord struct {
	lane uint8
	wait bool
}

type xoThread struct {
	process
	pc     xoPC
	op     uint8
	chosen uint8 // participants that it still must wake
	woken  bool
	saw    bool // WAIT was set when it found the word stamped; for a mutation
}

type xoState struct {
	w     [2]xoWord
	bits  uint8
	p     [3]xoThread
	wake  bool // the reaper still must wake
	kills toll
}

// An XOWait configures the xo wait model: participants wait for each other's stamps. Words lists
// the words that each participant stamps, in order. Kills limits the kills. Bug is a mutation
// that must be detected, or "".
type XOWait struct {
	Words [3][]uint8
	Kills int
	Bug   string
}

// Mutations of the xo wait model.
const (
	WaitBitFirst = "a waiter sets WAIT before its bit, and does not look again"
	BlindWait    = "a waiter sets its bit and parks without setting WAIT on a stamped word"
	TrustWait    = "a waiter that has found WAIT set does not look again"
	ClearQuiet   = "the participant that clears xo wakes nobody"
	NoRegister   = "a waiter that is woken and has to wait still does not register again"
	XOReaperMute = "the reaper wakes nobody after it cleared an xo"
)

// Model returns the transition system of c, for [Explore].
func (c XOWait) Model() Model[xoState] {
	return Model[xoState]{Steps: c.steps, Events: c.events, Check: func(*xoState) error { return nil }, Done: c.done}
}

func (c XOWait) steps(s xoState, emit func(xoState)) {
	for i := range s.p {
		n := s
		switch {
		case s.p[i].lives() && c.step(&n, i):
			emit(n)
		case s.p[i].life == killed:
			c.reap(&n, i)
			emit(n)
		}
	}
	if s.wake {
		s.wake = false
		for i := range s.p {
			s.p[i].woken = true
		}
		emit(s)
	}
}

func (c XOWait) events(s xoState, emit func(xoState)) {
	for i := range s.p {
		if n := s; n.kills.kill(&n.p[i].process, c.Kills) {
			n.p[i] = xoThread{process: n.p[i].process}
			emit(n)
		}
	}
}

// reap clears the stamps and the bit of the dead participant i, frees its seat, and lets the
// reaper wake the others.
func (c XOWait) reap(s *xoState, i int) {
	for w := range s.w {
		if s.w[w].lane == lane(i) {
			s.w[w] = xoWord{}
		}
	}
	s.bits &^= 1 << i
	s.p[i].life = reaped
	s.wake = c.Bug != XOReaperMute
}

func (c XOWait) step(s *xoState, i int) bool {
	p := &s.p[i]
	if int(p.op) == len(c.Words[i]) {
		return false
	}
	w := &s.w[c.Words[i][p.op]]
	switch p.pc {
	case xTry:
		if p.pc = xBit; c.Bug == WaitBitFirst {
			p.pc = xWait
		}
		p.saw = w.wait && c.Bug == TrustWait
		if w.lane == 0 {
			*w = xoWord{lane: lane(i)}
			p.pc = xClear
		}
	case xBit:
		s.bits |= 1 << i
		if p.pc = xWait; c.Bug == BlindWait || c.Bug == WaitBitFirst {
			p.pc = xParked
		}
	case xWait: // the CAS that sets WAIT is the second check
		if w.lane == 0 && !p.saw {
			p.pc = xTry
			break
		}
		w.wait = w.lane != 0
		if p.pc = xParked; c.Bug == WaitBitFirst {
			p.pc = xBit
		}
	case xParked:
		if !p.woken {
			return false
		}
		p.woken = false
		if p.pc = xTry; c.Bug == NoRegister && w.lane != 0 {
			p.pc = xParked
		}
	case xClear:
		if p.pc = xTake; !w.wait || c.Bug == ClearQuiet {
			p.next()
		}
		*w = xoWord{}
	case xTake:
		p.chosen, s.bits = s.bits, 0
		p.pc = xWake
	case xWake:
		if p.chosen == 0 {
			p.next()
			break
		}
		for j := range s.p {
			if p.chosen>>j&1 == 1 {
				p.chosen &^= 1 << j
				s.p[j].woken = s.p[j].lives()
				break
			}
		}
	}
	return true
}

func (p *xoThread) next() { p.op++; p.pc = xTry }

func (c XOWait) done(s *xoState) error {
	for i := range s.p {
		if s.p[i].lives() && int(s.p[i].op) < len(c.Words[i]) {
			return fmt.Errorf("stuck: participant %d waits for a word that is clear", i)
		}
	}
	return nil
}
