package model

import "fmt"

// The wake model: two publishers and three waiters of one ring, which is a count of messages here. A waiter takes one message and stops; it may give up at any time
// while it is parked, and anybody may be killed. What must hold: when nothing moves any more, no message is there while a living waiter is parked.

const (
	publishers = 2
	waiters    = 3
	wakers     = publishers + waiters
)

type wakePC uint8

const (
	wStart wakePC = iota
	wPick         // somebody to wake, when there is a message
	wRing
	wTry
	wBit
	wAgain
	wParked
	wLeave
	wPassOn
	wEnd
	wReapBits
	wReapRing
)

type waker struct {
	life   life
	pc     wakePC
	chosen uint8
	left   uint8 // messages that a publisher has still to publish
	rung   bool
}

type wakeState struct {
	messages uint8
	bits     uint8 // the waiter bitmap, by participant
	p        [wakers]waker
	reaper   wakePC
	set      uint8
	kills    uint8
}

// Wake is a configuration of the wake model.
type Wake struct {
	Messages int // of each publisher
	Kills    int
	Bug      string
}

// The mutations of the wake model.
const (
	NoLook         = "a waiter does not look at the ring again after it set its bit"
	NoPassOn       = "a chosen waiter that gives up does not pass the ring on"
	NoPassOnFound  = "a chosen waiter that finds a message before it parks does not pass the ring on"
	NoReaperRing   = "the reaper does not ring"
	RingFirst      = "the reaper rings before it clears the bits of the dead"
	FreeBeforeRing = "the reaper frees the slot before it rings, and is killed in between"
	BitFirst       = "a publisher chooses a waiter before the message is there"
)

// Model returns the transition system of c.
func (c Wake) Model() Model[wakeState] {
	var s wakeState
	for i := range publishers {
		s.p[i].left = uint8(c.Messages)
	}
	for i := publishers; i < wakers; i++ {
		s.p[i].pc = wTry
	}
	return Model[wakeState]{Init: s, Steps: c.steps, Events: c.events, Check: func(*wakeState) error { return nil }, Done: c.done}
}

func (c Wake) steps(s wakeState, emit func(wakeState)) {
	c.reap(s, emit)
	for i := range wakers {
		switch p := &s.p[i]; {
		case p.life != alive:
		case p.pc == wPick:
			c.pick(s, i, emit)
		default:
			if n := s; c.step(&n, i) {
				emit(n)
			}
		}
	}
}

// events: a parked waiter gives up, somebody is killed, or the reaper is and another one begins.
func (c Wake) events(s wakeState, emit func(wakeState)) {
	if n := s; s.reaper != wStart && int(s.kills) < c.Kills {
		n.reaper, n.set = wStart, 0
		n.kills++
		emit(n)
	}
	for i := range wakers {
		if n := s; s.p[i].life == alive && s.p[i].pc == wParked {
			n.p[i].pc = wLeave
			emit(n)
		}
		if n := s; s.p[i].life == alive && s.p[i].pc != wEnd && int(s.kills) < c.Kills {
			n.p[i] = waker{life: killed}
			n.kills++
			emit(n)
		}
	}
}

// pick clears the bit of any waiter, or ends if there is none.
func (c Wake) pick(s wakeState, i int, emit func(wakeState)) {
	if s.bits == 0 {
		s.p[i].rang(&s, i, c.Bug == BitFirst)
		emit(s)
		return
	}
	for w := range wakers {
		if n := s; s.bits>>w&1 == 1 {
			n.bits &^= 1 << w
			n.p[i].chosen, n.p[i].pc = uint8(w), wRing
			emit(n)
		}
	}
}

// rang goes on after a ring: a publisher with its next message, a waiter is done.
func (p *waker) rang(s *wakeState, i int, late bool) {
	p.chosen, p.pc = 0, wEnd
	if i < publishers {
		p.pc = wStart
		if late {
			s.messages++
		}
	}
}

func (c Wake) step(s *wakeState, i int) bool {
	p := &s.p[i]
	me := uint8(1) << i
	switch p.pc {
	case wStart:
		if p.left == 0 {
			return false
		}
		p.left--
		if c.Bug != BitFirst {
			s.messages++
		}
		p.pc = wPick
	case wRing:
		s.p[p.chosen].rung = s.p[p.chosen].life == alive
		p.rang(s, i, c.Bug == BitFirst)
	case wTry:
		if p.pc = wBit; s.messages > 0 {
			s.messages--
			p.pc = wLeave
		}
	case wBit:
		s.bits |= me
		if p.pc = wAgain; c.Bug == NoLook {
			p.pc = wParked
		}
	case wAgain:
		if p.pc = wParked; s.messages > 0 {
			s.messages--
			p.pc = wLeave
			if c.Bug == NoPassOnFound {
				s.bits &^= me
				p.pc = wEnd
			}
		}
	case wParked:
		if !p.rung {
			return false
		}
		p.rung = false
		p.pc = wTry
	case wLeave: // whose bit somebody else has cleared was chosen
		if p.pc = wEnd; s.bits&me == 0 && c.Bug != NoPassOn {
			p.pc = wPassOn
		}
		s.bits &^= me
	case wPassOn:
		if p.pc = wEnd; s.messages > 0 {
			p.pc = wPick
		}
	default:
		return false
	}
	return true
}

// reap clears the bits of the dead, then rings everybody that lives.
func (c Wake) reap(s wakeState, emit func(wakeState)) {
	switch s.reaper {
	case wStart:
		for i := range wakers {
			if s.p[i].life == killed {
				s.set |= 1 << i
			}
		}
		if s.set == 0 {
			return
		}
		if s.reaper = wReapBits; c.Bug == RingFirst {
			s.reaper = wReapRing
		}
	case wReapBits:
		s.bits &^= s.set
		switch s.reaper = wReapRing; c.Bug {
		case RingFirst, NoReaperRing:
			s.reaped()
		case FreeBeforeRing:
			s.reaped()
			s.reaper = wReapRing
		}
	case wReapRing:
		for i := range wakers {
			s.p[i].rung = s.p[i].life == alive && s.p[i].pc != wEnd
		}
		if s.reaper = wReapBits; c.Bug != RingFirst {
			s.reaped()
		}
	}
	emit(s)
}

func (s *wakeState) reaped() {
	for i := range wakers {
		if s.set>>i&1 == 1 {
			s.p[i].life = reaped
		}
	}
	s.reaper, s.set = wStart, 0
}

func (c Wake) done(s *wakeState) error {
	for i := range wakers {
		if s.p[i].life == alive && s.p[i].pc == wParked && s.messages > 0 {
			return fmt.Errorf("waiter %d sleeps while a message is there", i)
		}
	}
	return nil
}
