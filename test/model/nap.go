package model

import (
	"errors"
	"fmt"
	"math/bits"
)

// The nap model: in one participant, a napper waits for messages in queue 0. Another goroutine,
// which only parks, waits for messages in queue 1. For each message it puts one into queue 0. A
// third goroutine answers the doorbell, and a fourth runs when the napper's context is done. Two
// other participants publish, one per queue. Any participant may be killed, and a new participant
// takes the seat of a dead one.
//
// Invariants of terminal states:
//   - No goroutine may sleep while there is a message for it. Without a kill, this must hold even
//     if no nap ends by its timeout.
//   - No goroutine may sleep after its context is done.

const (
	napper = iota
	parker
	answerer
	alarmer
	napWakers // two wakers, of queue 0 and of queue 1
	napActors = napWakers + 2
	queues    = 2
)

type napPC uint8

const (
	nTry napPC = iota
	nLie
	nQueue
	nLook
	nContext
	nSleep
	nAsleep
	nUp
	nHeard
	nRemove
	nParked
	nPublish
	nTake
	aWait // waits for the doorbell
	aLook
	aBit
	aAgain
	aRouse
	aRouseWake
	eWait // waits for the end of the context
	eRouse
	eWake
	rPublish
	rTake
	rNap
	rWake
	rBell
	nEnd
)

const (
	wordAwake = iota
	wordNapping
	wordRoused // the first of two values, by queue
)

type napActor struct {
	pc, back   napPC // back is the step after all queues are answered
	unanswered uint8 // bit set of the queues to answer
	left       uint8 // remaining messages of a publisher
}

type napState struct {
	word, kills, owed uint8 // owed: deaths that the reaper has not announced
	messages          [queues]uint8
	bits              [queues]bool
	queued, woken     [queues]bool
	bell              uint8 // bit set of the queues that the doorbell rings for
	asleep            bool
	ended             bool // the napper's context is done
	process           life // life of all processes but the publishers
	a                 [napActors]napActor
}

// A Nap configures the nap model: a goroutine sleeps on a word of its process until another
// process wakes it. Kills limits the kills. Bug is a mutation that must be detected, or "".
type Nap struct {
	Messages [queues]int // to publish
	Kills    int
	Ends     bool // the napper's context may end
	Bug      string
}

// Mutations of the nap model.
const (
	NapNoLook  = "a napper does not look after it lay down"
	NapLate    = "a napper lies down after it looked"
	NapBlind   = "a waker that sees a nap wakes without a CAS"
	NapDeaf    = "a napper that wakes up forgets that it was woken"
	NapOwnOnly = "a napper that was woken answers for its own queue only"
	NapShared  = "a waker that finds a napper roused for another queue relies on that"
	NapNoReset = "a napper leaves the word as it was"
	NapHeir    = "a new participant does not clear the word of a dead one"
	NapNoRouse = "a wake inside the process does not end the nap"
	NapForever = "a nap has no end"
	NapUnaware = "a napper looks whether its context has ended before it lies down"
)

// Model returns the transition system of c, for [Explore].
func (c Nap) Model() Model[napState] {
	var s napState
	s.begin()
	for i := range queues {
		s.a[napWakers+i] = napActor{pc: rPublish, left: uint8(c.Messages[i])}
	}
	return Model[napState]{Init: s, Steps: c.steps, Events: c.events,
		Check: func(*napState) error { return nil }, Done: c.done}
}

// begin starts a process with the napper, the goroutine that sleeps until a queue has a message,
// and with the three goroutines beside it.
func (s *napState) begin() {
	s.process, s.ended = alive, false
	s.a[napper], s.a[parker], s.a[answerer], s.a[alarmer] = napActor{pc: nTry}, napActor{pc: nTry},
		napActor{pc: aWait}, napActor{pc: eWait}
}

func (c Nap) steps(s napState, emit func(napState)) {
	if n := s; c.recover(&n) {
		emit(n)
	}
	if c.Kills > 0 {
		c.wakeUp(s, emit)
	}
	for i := range s.a {
		if n := s; (i >= napWakers || s.process == alive) && c.step(&n, i) {
			emit(n)
		}
	}
}

// events emits the states after the end of a nap, the end of the context, and kills.
func (c Nap) events(s napState, emit func(napState)) {
	c.wakeUp(s, emit)
	if n := s; c.Ends && !s.ended && s.process == alive {
		n.ended = true
		emit(n)
	}
	if int(s.kills) == c.Kills {
		return
	}
	s.kills++
	if n := s; s.process == alive {
		n.process = killed
		emit(n)
	}
	for i := napWakers; i < napActors; i++ {
		if n := s; s.a[i].pc != nEnd {
			n.a[i] = napActor{pc: nEnd}
			n.owed++
			emit(n)
		}
	}
}

func (c Nap) wakeUp(s napState, emit func(napState)) {
	if s.asleep && s.process == alive && c.Bug != NapForever {
		s.asleep = false
		emit(s)
	}
}

// recover performs the next step in s of the reaper: it clears a dead participant's bits and its
// doorbell; then another process takes the seat; or it wakes all participants. It returns false
// if there is nothing to do.
func (c Nap) recover(s *napState) bool {
	switch {
	case s.process == killed:
		s.bits, s.queued, s.woken, s.bell, s.asleep = [queues]bool{}, [queues]bool{}, [queues]bool{}, 0, false
		s.process = reaped
	case s.process == reaped:
		if c.Bug != NapHeir {
			s.word = wordAwake
		}
		s.begin()
	case s.owed > 0:
		s.owed--
		s.bell = 1<<queues - 1
	default:
		return false
	}
	return true
}

func (c Nap) step(s *napState, i int) bool {
	p := &s.a[i]
	switch {
	case p.pc >= rPublish:
		return c.wake(s, p, i-napWakers)
	case p.pc >= eWait:
		return c.alarm(s, p)
	case p.pc >= aWait:
		return c.answer(s, p)
	case p.pc >= nParked:
		return c.stepParked(s, p, i)
	}
	return c.rest(s, p, i)
}

// rest performs the next step in s of goroutine i, with state p, up to parking. The napper parks
// after its nap. rest returns false while the napper sleeps.
func (c Nap) rest(s *napState, p *napActor, i int) bool {
	switch p.pc {
	case nTry:
		switch {
		case s.messages[i] > 0:
			s.messages[i]--
			if i == parker {
				p.pc = nPublish
			}
		case i == napper && c.Bug == NapUnaware && s.ended:
			p.pc = nQueue
		case i == napper && c.Bug != NapLate:
			p.pc = nLie
		default:
			p.pc = nQueue
		}
	case nLie:
		s.word = wordNapping
		if p.pc = nQueue; c.Bug == NapLate {
			p.pc = nContext
		}
	case nQueue:
		s.queued[i], s.woken[i], s.bits[i] = true, false, true
		p.pc = nLook
	case nLook:
		found := s.messages[i] > 0 && (i == parker || c.Bug != NapNoLook)
		switch {
		case i == parker && !found:
			p.pc = nParked
		case i == parker || found && c.Bug == NapLate:
			p.pc = nRemove
		case found:
			p.pc, p.back = nUp, nRemove
		case c.Bug == NapLate:
			p.pc, p.back = nLie, nParked
		default:
			p.pc, p.back = nContext, nParked
		}
	case nContext:
		if p.pc = nSleep; s.ended && c.Bug != NapUnaware {
			p.pc = nUp
		}
	case nSleep: // the kernel compares
		if p.pc = nUp; s.word == wordNapping {
			s.asleep = true
			p.pc = nAsleep
		}
	case nAsleep:
		if s.asleep {
			return false
		}
		p.pc = nUp
	case nUp:
		if p.pc = nHeard; s.word == wordNapping {
			if c.Bug != NapNoReset {
				s.word = wordAwake
			}
			p.goBack()
		}
	case nHeard:
		if s.word >= wordRoused {
			p.unanswered = 1 << (s.word - wordRoused)
			if s.word = wordAwake; c.Bug == NapOwnOnly {
				p.unanswered = 1 << napper
			}
			if c.Bug != NapDeaf {
				p.pc = aLook
				break
			}
		}
		p.goBack()
	case nRemove:
		s.queued[i] = false
		p.pc = nTry
	}
	return true
}

// stepParked performs the next step in s of goroutine i, with state p, from parking on, or of the
// parker's answer to a message: it publishes one for the napper within its process. It returns
// false while the goroutine is parked.
func (c Nap) stepParked(s *napState, p *napActor, i int) bool {
	switch p.pc {
	case nParked:
		if !s.woken[i] {
			return false
		}
		s.woken[i] = false
		p.pc = nTry
	case nPublish:
		s.messages[napper]++
		p.pc = nTake
	case nTake:
		if p.pc = nTry; s.bits[napper] {
			s.bits[napper] = false
			p.pc, p.back, p.unanswered = aLook, nTry, 1<<napper
		}
	}
	return true
}

func (p *napActor) goBack() { p.pc, p.back, p.unanswered = p.back, 0, 0 }

// answer performs the next step in s of p, which examines, one after another, the queues that
// the participant was woken for. It returns false while the doorbell has not rung.
func (c Nap) answer(s *napState, p *napActor) bool {
	queue := bits.TrailingZeros8(p.unanswered)
	next := func() {
		p.unanswered &^= 1 << queue
		if p.pc = aLook; p.unanswered == 0 {
			p.goBack()
		}
	}
	switch p.pc {
	case aWait:
		if s.bell == 0 {
			return false
		}
		p.pc, p.back, p.unanswered = aLook, aWait, s.bell
		s.bell = 0
	case aLook, aAgain:
		switch {
		case s.queued[queue] && s.messages[queue] > 0:
			s.queued[queue], s.woken[queue] = false, true
			if queue == napper && c.Bug != NapNoRouse {
				p.pc = aRouse
				break
			}
			next()
		case s.queued[queue] && p.pc == aLook:
			p.pc = aBit
		default:
			next()
		}
	case aBit:
		s.bits[queue] = true
		p.pc = aAgain
	case aRouse:
		if s.word == wordNapping {
			s.word = wordAwake
			p.pc = aRouseWake
			break
		}
		next()
	case aRouseWake:
		s.asleep = false
		next()
	}
	return true
}

// alarm performs the next step in s of p, which ends the nap when the context is done, once. It
// returns false until then.
func (c Nap) alarm(s *napState, p *napActor) bool {
	switch p.pc {
	case eWait:
		if !s.ended {
			return false
		}
		p.pc = eRouse
	case eRouse:
		if p.pc = nEnd; s.word == wordNapping {
			s.word = wordAwake
			p.pc = eWake
		}
	case eWake:
		s.asleep = false
		p.pc = nEnd
	}
	return true
}

// wake performs the next step in s of p, the publisher of a queue in another participant. It
// returns false if no message is left.
func (c Nap) wake(s *napState, p *napActor, queue int) bool {
	switch p.pc {
	case rPublish:
		if p.left == 0 {
			return false
		}
		p.left--
		s.messages[queue]++
		p.pc = rTake
	case rTake:
		if p.pc = rPublish; s.bits[queue] {
			s.bits[queue] = false
			p.pc = rNap
		}
	case rNap:
		if p.pc = rBell; s.word == wordNapping {
			if c.Bug != NapBlind {
				s.word = wordRoused + uint8(queue)
			}
			p.pc = rWake
		} else if s.word >= wordRoused && c.Bug == NapShared {
			p.pc = rPublish
		}
	case rWake:
		s.asleep = false
		p.pc = rPublish
	case rBell:
		if s.process == alive {
			s.bell |= 1 << queue
		}
		p.pc = rPublish
	default:
		return false
	}
	return true
}

func (c Nap) done(s *napState) error {
	for i := range queues {
		if s.messages[i] > 0 {
			return fmt.Errorf("%s sleeps while %d messages are there",
				[queues]string{"the napper", "the parker"}[i], s.messages[i])
		}
	}
	if s.ended && s.asleep {
		return errors.New("the napper sleeps although its context has ended")
	}
	return nil
}
