package model

import "fmt"

// The barrier nap model: three participants meet at a barrier in turns. Those that wait nap on the
// upper half of its state word, which the kernel compares before it puts them to sleep. The last
// one ends the turn and wakes the nappers if the word has the napping flag. A participant may be
// killed at any step. Invariant: without a kill, no participant may sleep through the end of its
// turn, so no nap ends by its timeout. A kill between the CAS and the wake-up may only cost the
// remainder of a nap.

type bnPC uint8

const (
	bnCome  bnPC = iota // load the word, before the CAS that arrives
	bnEnter             // that CAS
	bnLook              // load the word, before the CAS that sets napping
	bnSay               // that CAS
	bnSleep             // the kernel compares and sleeps
	bnAsleep
	bnLoad // last one: load the word
	bnEnd  // and the CAS that ends the turn
	bnWake
)

type bnWord struct {
	turn, arrived uint8
	napping       bool
}

type bnUser struct {
	process
	pc   bnPC
	turn uint8 // the turn in which it waits
	saw  bnWord
}

type bnState struct {
	word  bnWord
	p     [3]bnUser
	kills toll
}

// A BarrierNap configures the barrier nap model: participants that wait at a barrier sleep in
// the kernel. Kills limits the kills. Bug is a mutation that must be detected, or "".
type BarrierNap struct {
	Turns, Kills int
	Bug          string
}

// Mutations of the barrier nap model.
const (
	BarrierNapUnsaid  = "a napper does not say so"
	BarrierNapStale   = "the last one goes by whether somebody napped before its CAS"
	BarrierNapNoMatch = "a napper sleeps although the turn is over"
	BarrierNapOne     = "the last one wakes one napper"
	BarrierNapFirst   = "the last one wakes before it ends the turn"
	BarrierNapForever = "a nap has no end of its own"
)

// Model returns the transition system of c, for [Explore].
func (c BarrierNap) Model() Model[bnState] {
	return Model[bnState]{Steps: c.steps, Events: c.events, Check: func(*bnState) error { return nil }, Done: c.done}
}

func (c BarrierNap) steps(s bnState, emit func(bnState)) {
	for i := range s.p {
		n := s
		switch {
		case !s.p[i].lives():
		case c.step(&n, i):
			emit(n)
		case s.p[i].pc == bnAsleep && s.kills > 0 && c.Bug != BarrierNapForever:
			n.p[i].pc = bnLook // the nap has ended
			emit(n)
		}
	}
}

func (c BarrierNap) events(s bnState, emit func(bnState)) {
	for i := range s.p {
		if n := s; n.kills.kill(&n.p[i].process, c.Kills) {
			emit(n)
		}
	}
}

func (c BarrierNap) step(s *bnState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case bnCome:
		if int(s.word.turn) == c.Turns || int(s.word.arrived) == len(s.p) {
			return false
		}
		p.saw, p.pc = s.word, bnEnter
	case bnEnter:
		if p.pc = bnCome; s.word == p.saw {
			s.word.arrived++
			p.turn = s.word.turn
			if p.pc = bnLook; int(s.word.arrived) == len(s.p) {
				p.pc = bnLoad
			}
		}
	case bnLook:
		p.saw = s.word
		switch {
		case s.word.turn != p.turn:
			p.pc = bnCome
		case s.word.napping || c.Bug == BarrierNapUnsaid:
			p.pc = bnSleep
		default:
			p.pc = bnSay
		}
	case bnSay:
		if p.pc = bnLook; s.word == p.saw {
			s.word.napping = true
			p.saw, p.pc = s.word, bnSleep
		}
	case bnSleep:
		if p.pc = bnLook; s.word.turn == p.saw.turn || c.Bug == BarrierNapNoMatch {
			p.pc = bnAsleep
		}
	case bnAsleep:
		return false
	case bnLoad:
		if p.saw, p.pc = s.word, bnEnd; c.Bug == BarrierNapFirst {
			c.wake(s, p.saw)
		}
	case bnEnd:
		switch {
		case s.word == p.saw, c.Bug == BarrierNapStale:
			s.word = bnWord{turn: s.word.turn + 1}
			p.pc = bnWake
		default:
			p.pc = bnLoad
		}
	case bnWake:
		if p.pc = bnCome; c.Bug != BarrierNapFirst {
			c.wake(s, p.saw)
		}
	}
	return true
}

// wake is a single system call that wakes all sleepers on the word, if the value before says
// that there are some.
func (c BarrierNap) wake(s *bnState, before bnWord) {
	if !before.napping {
		return
	}
	for i := range s.p {
		if s.p[i].pc == bnAsleep {
			s.p[i].pc = bnLook
			if c.Bug == BarrierNapOne {
				return
			}
		}
	}
}

func (c BarrierNap) done(s *bnState) error {
	for i, p := range s.p {
		if p.lives() && p.pc == bnAsleep && p.turn != s.word.turn {
			return fmt.Errorf("participant %d sleeps through the end of turn %d", i, p.turn)
		}
	}
	if s.kills == 0 && int(s.word.turn) != c.Turns {
		return fmt.Errorf("turn %d does not end", s.word.turn)
	}
	return nil
}
