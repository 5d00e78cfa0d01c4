package model

import "fmt"

// The wake model: two publishers and three goroutines that wait for messages of one ring, which is
// represented by a count. Two of the goroutines belong to one participant. A goroutine takes one
// message and exits. It may give up while it is parked. The goroutine that answers a participant's
// doorbell is a separate actor. A participant may be killed or stopped forever.
//
// Invariant: in a terminal state with a message, no living goroutine may be parked, unless its
// participant is stopped.

const (
	publishers = 2
	waiters    = 3
	homes      = 2 // participants of the waiters
)

// homeOf maps waiters to their participants.
var homeOf = [waiters]uint8{0, 0, 1}

type wakePC uint8

const (
	wStart wakePC = iota
	wPick         // picks a participant to wake
	wWake
	wRewake // wakes again while there is a message
	wTry
	wBit // sets its bit; the previous step queued it in the process
	wAgain
	wParked
	wLeave
	wPassOn
	wEnd
	bIdle // the goroutine that answers the doorbell
	bWaiters
	bLook
	bBit
	bAgain
	bPassOn
	wReapBits
	wReapWake
)

// A waker wakes participants. It is a publisher, a waiter that passes a wake-up on, or the
// goroutine that answers a doorbell.
type waker struct {
	pc     wakePC
	back   wakePC // the step after the wake-up
	chosen uint8
	left   uint8 // remaining messages of a publisher
	queued bool
	woken  bool
	waited bool
}

type home struct {
	process
	stopped bool
	woken   bool
}

type wakeState struct {
	messages uint8
	bits     uint8 // by participant
	pubs     [publishers]waker
	writers  [publishers]process
	w        [waiters]waker
	bell     [homes]waker
	homes    [homes]home
	reaper   wakePC
	set      uint8 // dead participants: homes, then publishers
	kills    uint8
	stops    uint8
}

// A Wake configures the wake model: goroutines of several participants wait for messages of a
// ring, and no wake-up may be lost. Messages is the number of messages of each publisher. Kills
// limits the kills. Bug is a mutation that must be detected, or "".
type Wake struct {
	Messages [publishers]int
	Kills    int
	Stops    int // participants that are stopped forever
	Bug      string
}

// Mutations of the wake model.
const (
	NoLook         = "a waiter does not look at the ring again after it set its bit"
	NoPassOn       = "a waiter that gives up does not pass on"
	NoPassOnFound  = "a waiter that has waited and has a message does not pass on"
	NoPassOnIdle   = "a participant that is woken where nobody waits does not pass on"
	NoBitAgain     = "a participant that is woken for nothing does not ask to be woken again"
	NoReaperWake   = "the reaper wakes nobody"
	WakeFirst      = "the reaper wakes before it clears the bits of the dead"
	FreeBeforeWake = "the reaper frees the seat before it wakes them, and is killed in between"
	BitFirst       = "a publisher chooses a waiter before the message is there"
	NoRewake       = "a participant that has woken another one does not look again whether it was of use"
)

// Model returns the transition system of c, for [Explore].
func (c Wake) Model() Model[wakeState] {
	var s wakeState
	for i := range s.pubs {
		s.pubs[i] = waker{pc: wStart, left: uint8(c.Messages[i])}
	}
	for i := range s.w {
		s.w[i].pc = wTry
	}
	for i := range s.bell {
		s.bell[i].pc = bIdle
	}
	return Model[wakeState]{Init: s, Steps: c.steps, Events: c.events,
		Check: func(*wakeState) error { return nil }, Done: c.done}
}

func (s *wakeState) runs(home int) bool { return s.homes[home].lives() && !s.homes[home].stopped }

func (c Wake) steps(s wakeState, emit func(wakeState)) {
	c.reap(s, emit)
	step := func(n *wakeState, r *waker, moved bool) {
		switch {
		case r.pc == wPick:
			c.pick(n, r, emit)
		case moved:
			emit(*n)
		}
	}
	for i := range s.pubs {
		if n := s; s.writers[i].lives() {
			step(&n, &n.pubs[i], n.pubs[i].pc != wPick && c.publish(&n, &n.pubs[i]))
		}
	}
	for i := range s.w {
		if n := s; s.runs(int(homeOf[i])) {
			step(&n, &n.w[i], n.w[i].pc != wPick && c.stepWaiter(&n, i))
		}
	}
	for i := range s.bell {
		if n := s; s.runs(i) {
			step(&n, &n.bell[i], n.bell[i].pc != wPick && c.answer(&n, i))
		}
	}
}

// events emits the states after a parked waiter gives up, a participant is killed or stopped, or
// the reaper is killed, which another one replaces.
func (c Wake) events(s wakeState, emit func(wakeState)) {
	for i := range s.w {
		if n := s; s.runs(int(homeOf[i])) && s.w[i].pc == wParked && !s.locked(homeOf[i]) {
			n.w[i].pc, n.w[i].queued, n.w[i].woken = wLeave, false, false
			emit(n)
		}
	}
	for i := range s.homes {
		if n := s; s.runs(i) && int(s.stops) < c.Stops && !s.wakes(i) {
			n.homes[i].stopped = true
			n.stops++
			emit(n)
		}
	}
	if int(s.kills) == c.Kills {
		return
	}
	s.kills++
	if n := s; s.reaper != wStart {
		n.reaper, n.set = wStart, 0
		emit(n)
	}
	for i := range s.homes {
		if n := s; s.homes[i].lives() && !s.homes[i].stopped {
			n.homes[i] = home{process: process{killed}}
			for k, h := range homeOf {
				if int(h) == i {
					n.w[k] = waker{pc: wEnd}
				}
			}
			n.bell[i] = waker{pc: bIdle}
			emit(n)
		}
	}
	for i := range s.pubs {
		// Before and after that, it has no state to lose.
		if n := s; s.writers[i].lives() && s.pubs[i].pc != wStart {
			n.writers[i].life, n.pubs[i] = killed, waker{}
			emit(n)
		}
	}
}

// wakes reports whether a waker of participant home is between the two steps of a wake-up. A
// participant that is stopped there withholds the wake-up.
func (s *wakeState) wakes(home int) bool {
	for i := range s.w {
		if int(homeOf[i]) == home && s.w[i].pc == wWake {
			return true
		}
	}
	return s.bell[home].pc == wWake
}

// locked reports whether the goroutine that answers the doorbell of participant home holds the
// lock of the queue. It keeps the lock while it checks again.
func (s *wakeState) locked(home uint8) bool { pc := s.bell[home].pc; return pc == bBit || pc == bAgain }

// pick emits the states after the first step of a wake-up by r, which clears the bit of a
// participant: one state for each participant, or the state after r has found none and
// continues.
func (c Wake) pick(s *wakeState, r *waker, emit func(wakeState)) {
	if s.bits == 0 {
		c.afterWake(s, r)
		emit(*s)
		return
	}
	before, was := s.bits, *r
	for h := range homes {
		if before>>h&1 == 1 {
			s.bits = before &^ (1 << h)
			*r = was
			r.chosen, r.pc = uint8(h), wWake
			emit(*s)
		}
	}
}

// wake performs the second step in s of a wake-up by r: it wakes the chosen participant.
func (c Wake) wake(s *wakeState, r *waker) {
	if h := &s.homes[r.chosen]; h.lives() {
		h.woken = true
	}
	r.chosen, r.pc = 0, wRewake
	if c.Stops == 0 && c.Bug != BitFirst || c.Bug == NoRewake { // others must work without rewake
		c.afterWake(s, r)
	}
}

// rewake sets the next step of r after a wake-up: it wakes the next participant if there is
// still a message.
func (c Wake) rewake(s *wakeState, r *waker) {
	if r.pc = wPick; s.messages == 0 || s.bits == 0 {
		c.afterWake(s, r)
	}
}

// afterWake sets the next step of r after its last wake-up.
func (c Wake) afterWake(s *wakeState, r *waker) {
	if r.pc, r.back = r.back, 0; r.pc == wStart && c.Bug == BitFirst {
		s.messages++
	}
}

// publish performs the next step in s of publisher r. It returns false if no message is left.
func (c Wake) publish(s *wakeState, r *waker) bool {
	switch r.pc {
	case wStart:
		if r.left == 0 {
			return false
		}
		r.left--
		if c.Bug != BitFirst {
			s.messages++
		}
		r.pc, r.back = wPick, wStart
	case wWake:
		c.wake(s, r)
	case wRewake:
		c.rewake(s, r)
	}
	return true
}

// stepWaiter performs the next step in s of goroutine i, which waits for a message. It returns
// false if the goroutine is parked, waits for the lock of the queue, or has ended.
func (c Wake) stepWaiter(s *wakeState, i int) bool {
	p, bit := &s.w[i], uint8(1)<<homeOf[i]
	switch p.pc {
	case wTry:
		switch {
		case s.messages == 0:
			p.pc = wBit
		case p.waited && c.Bug != NoPassOnFound:
			s.messages--
			p.pc = wPassOn
		default:
			s.messages--
			p.pc = wEnd
		}
	case wBit:
		if s.locked(homeOf[i]) {
			return false
		}
		p.queued, p.woken, p.waited = true, false, true
		s.bits |= bit
		if p.pc = wAgain; c.Bug == NoLook {
			p.pc = wParked
		}
	case wAgain:
		if s.messages == 0 {
			p.pc = wParked
			break
		}
		if s.locked(homeOf[i]) {
			return false
		}
		p.queued, p.woken = false, false
		p.pc = wTry
	case wParked:
		if !p.woken {
			return false
		}
		p.woken = false
		p.pc = wTry
	case wLeave: // with the error of its context
		if p.pc = wPassOn; c.Bug == NoPassOn {
			p.pc = wEnd
		}
	case wPassOn: // passes the wake-up to another goroutine here or to another participant
		if p.pc = wEnd; s.waiting(homeOf[i]) {
			s.homes[homeOf[i]].woken = true
		} else if s.messages > 0 {
			p.pc, p.back = wPick, wEnd
		}
	case wWake:
		c.wake(s, p)
	case wRewake:
		c.rewake(s, p)
	default:
		return false
	}
	return true
}

func (s *wakeState) waiting(home uint8) bool {
	for i := range s.w {
		if homeOf[i] == home && s.w[i].queued {
			return true
		}
	}
	return false
}

// wakeOne wakes the first goroutine of participant home that is in the queue.
func (s *wakeState) wakeOne(home uint8) {
	for i := range s.w {
		if homeOf[i] == home && s.w[i].queued {
			s.w[i].queued, s.w[i].woken = false, true
			return
		}
	}
}

// answer performs the next step in s of the goroutine at the doorbell of participant i. It
// returns false while the doorbell has not rung.
func (c Wake) answer(s *wakeState, i int) bool {
	b, h := &s.bell[i], uint8(i)
	switch b.pc {
	case bIdle:
		if !s.homes[i].woken {
			return false
		}
		s.homes[i].woken = false
		b.pc = bWaiters
	case bWaiters: // without the lock of the queue
		if b.pc = bLook; !s.waiting(h) {
			if b.pc = bPassOn; c.Bug == NoPassOnIdle {
				b.pc = bIdle
			}
		}
	case bLook:
		switch b.pc = bIdle; {
		case !s.waiting(h): // that goroutine checks for others itself
		case s.messages > 0:
			s.wakeOne(h)
		case c.Bug != NoBitAgain:
			b.pc = bBit
		}
	case bBit:
		s.bits |= 1 << h
		b.pc = bAgain
	case bAgain:
		if b.pc = bIdle; s.messages > 0 {
			s.wakeOne(h)
		}
	case bPassOn:
		if b.pc = bIdle; s.messages > 0 {
			b.pc, b.back = wPick, bIdle
		}
	case wWake:
		c.wake(s, b)
	case wRewake:
		c.rewake(s, b)
	}
	return true
}

// dead returns a bit set of the killed participants: homes, then publishers.
func (s *wakeState) dead() uint8 {
	return withLife(s.homes[:], killed) | withLife(s.writers[:], killed)<<homes
}

// reap emits the state after the reaper's next step, if there is one. The reaper clears the bits
// of the dead and then wakes all living participants.
func (c Wake) reap(s wakeState, emit func(wakeState)) {
	switch s.reaper {
	case wStart:
		if s.set = s.dead(); s.set == 0 {
			return
		}
		if s.reaper = wReapBits; c.Bug == WakeFirst {
			s.reaper = wReapWake
		}
	case wReapBits:
		s.bits &^= s.set
		switch s.reaper = wReapWake; c.Bug {
		case WakeFirst, NoReaperWake:
			s.reaped()
		case FreeBeforeWake:
			s.reaped()
			s.reaper = wReapWake
		}
	case wReapWake:
		for i := range s.homes {
			s.homes[i].woken = s.homes[i].woken || s.homes[i].lives()
		}
		if s.reaper = wReapBits; c.Bug != WakeFirst {
			s.reaped()
		}
	}
	emit(s)
}

func (s *wakeState) reaped() {
	for i := range s.homes {
		if s.set>>i&1 == 1 {
			s.homes[i].life = reaped
		}
	}
	for i := range s.writers {
		if s.set>>(homes+i)&1 == 1 {
			s.writers[i].life = reaped
		}
	}
	s.reaper, s.set = wStart, 0
}

func (c Wake) done(s *wakeState) error {
	for i := range s.w {
		if s.runs(int(homeOf[i])) && s.w[i].pc == wParked && s.messages > 0 {
			return fmt.Errorf("waiter %d sleeps while a message is there", i)
		}
	}
	return nil
}
