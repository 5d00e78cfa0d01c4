package model

import "fmt"

// The topics model: goroutines of one participant wait for messages of two rings, one for each
// topic. Two publishers, in participants of their own, put messages into a ring each, and wake the
// participant by its doorbell with the topic of the ring. The queue of the doorbell has room for
// one wakeup. A publisher may be killed, and a reaper then wakes the participant for all topics.
//
// Invariant: in a terminal state, no goroutine may be parked while there is a message for it.

const (
	topics    = 2
	allTopics = 1<<topics - 1
)

type topicPC uint8

const (
	tPublish topicPC = iota
	tTake
	tRing  // rings for the first time
	tMiss  // sets missed
	tAgain // rings again
	tOver
	tRead // the goroutine that answers the doorbell reads the first wakeup
	tDrain
	tMissed
	tClear
	tHandle
	tBit
	tLook
	tTry // a waiter
	tWait
	tSecond
	tParked
)

// A topicActor is a publisher, the reaper, a waiter, or the goroutine that answers the doorbell.
type topicActor struct {
	process
	pc        topicPC
	left      uint8 // messages of a publisher
	unhandled uint8 // topics that the doorbell's goroutine has to handle
}

type topicState struct {
	messages [topics]uint8
	bits     [topics]bool
	woken    [topics]bool
	pending  uint8 // topics of the wakeup in the doorbell's queue, or 0
	missed   bool
	pubs     [topics]topicActor
	waiters  [topics]topicActor
	bell     topicActor
	reaper   topicActor
	owed     uint8 // deaths that the reaper has not announced
	kills    toll
}

// A Topics configures the topics model: a doorbell wakes the goroutines that wait for one topic
// of several. Messages is the number of messages of each publisher. Kills limits the kills. Bug
// is a mutation that must be detected, or "".
type Topics struct {
	Messages [topics]int
	Kills    int
	Bug      string
}

// Mutations of the topics model.
const (
	TopicTrust    = "a waker that finds the doorbell full relies on the wakeups that are pending"
	TopicNoRing   = "a waker that has set missed does not ring again"
	TopicLate     = "a waker rings again before it sets missed"
	TopicEarly    = "a participant looks at missed before it reads the doorbell"
	TopicClears   = "a participant clears missed after it has tested the conditions"
	TopicOwnOnly  = "a participant that finds missed set handles only the topics that it has read"
	TopicMute     = "the reaper wakes nobody"
	TopicOneTopic = "the reaper wakes for one topic"
)

// Model returns the transition system of c, for [Explore].
func (c Topics) Model() Model[topicState] {
	s := topicState{bell: topicActor{pc: tRead}, reaper: topicActor{pc: tOver}}
	for i := range topics {
		s.pubs[i] = topicActor{pc: tPublish, left: uint8(c.Messages[i])}
		s.waiters[i] = topicActor{pc: tTry}
	}
	return Model[topicState]{Init: s, Steps: c.steps, Events: c.events,
		Check: func(*topicState) error { return nil }, Done: c.done}
}

func (c Topics) steps(s topicState, emit func(topicState)) {
	for i := range topics {
		if n := s; s.pubs[i].lives() && c.publish(&n, i) {
			emit(n)
		}
		if n := s; c.stepWaiter(&n, i) {
			emit(n)
		}
	}
	if n := s; c.answer(&n) {
		emit(n)
	}
	if n := s; s.bell.pc == tDrain && s.pending != 0 { // it has read as many as one wait returns
		n.bell.pc = tMissed
		emit(n)
	}
	if n := s; c.reap(&n) {
		emit(n)
	}
}

func (c Topics) events(s topicState, emit func(topicState)) {
	for i := range s.pubs {
		if n := s; s.pubs[i].pc != tPublish && n.kills.kill(&n.pubs[i].process, c.Kills) {
			n.owed++
			emit(n)
		}
	}
}

// publish performs the next step in s of publisher i. It returns false if no message is left.
func (c Topics) publish(s *topicState, i int) bool {
	p := &s.pubs[i]
	switch p.pc {
	case tPublish:
		if p.left == 0 {
			return false
		}
		p.left--
		s.messages[i]++
		p.pc = tTake
	case tTake:
		if p.pc = tPublish; s.bits[i] {
			s.bits[i] = false
			p.pc = tRing
		}
	default:
		if c.ring(s, p, 1<<i); p.pc == tOver {
			p.pc = tPublish
		}
	}
	return true
}

// ring performs the next step in s of a wake by the doorbell, by actor p for a set of topics.
// p.pc is tOver after the last step.
func (c Topics) ring(s *topicState, p *topicActor, set uint8) {
	full := s.pending != 0
	if !full && (p.pc == tRing || p.pc == tAgain) {
		s.pending = set
	}
	switch p.pc {
	case tRing:
		switch p.pc = tMiss; {
		case !full || c.Bug == TopicTrust:
			p.pc = tOver
		case c.Bug == TopicLate:
			p.pc = tAgain
		}
	case tMiss:
		s.missed = true
		if p.pc = tAgain; c.Bug == TopicNoRing || c.Bug == TopicLate {
			p.pc = tOver
		}
	case tAgain:
		if p.pc = tOver; c.Bug == TopicLate && full {
			p.pc = tMiss
		}
	}
}

// stepWaiter performs the next step in s of the goroutine that waits for the messages of ring i. It
// returns false while the goroutine is parked.
func (c Topics) stepWaiter(s *topicState, i int) bool {
	p := &s.waiters[i]
	switch p.pc {
	case tTry:
		if p.pc = tWait; s.messages[i] > 0 {
			s.messages[i]--
			p.pc = tTry
		}
	case tWait:
		s.woken[i], s.bits[i] = false, true
		p.pc = tSecond
	case tSecond:
		if p.pc = tParked; s.messages[i] > 0 {
			p.pc = tTry
		}
	case tParked:
		if !s.woken[i] {
			return false
		}
		p.pc = tTry
	}
	return true
}

// answer performs the next step in s of the goroutine that answers the doorbell. It returns
// false while the doorbell has not rung.
func (c Topics) answer(s *topicState) bool {
	p := &s.bell
	switch p.pc {
	case tRead:
		if s.pending == 0 {
			return false
		}
		if p.pc = tDrain; c.Bug == TopicEarly && s.missed {
			s.missed, p.unhandled = false, allTopics
		}
	case tDrain:
		p.unhandled |= s.pending
		if s.pending == 0 {
			p.pc = tMissed
		}
		s.pending = 0
	case tMissed:
		if p.pc = tHandle; s.missed && c.Bug != TopicEarly {
			if c.Bug != TopicOwnOnly {
				p.unhandled = allTopics
			}
			if p.pc = tClear; c.Bug == TopicClears {
				p.pc = tHandle
			}
		}
	case tClear:
		s.missed = false
		if p.pc = tHandle; c.Bug == TopicClears {
			p.pc = tRead
		}
	default:
		c.handle(s, p)
	}
	return true
}

// handle performs a step in s of p for the first topic that is left: it tests the condition, and
// sets the bit again if a goroutine still has to wait. Without a topic it ends the answer.
func (c Topics) handle(s *topicState, p *topicActor) {
	i := 0
	for p.unhandled>>i&1 == 0 && i < topics {
		i++
	}
	if i == topics {
		if p.pc = tRead; c.Bug == TopicClears && s.missed {
			p.pc = tClear
		}
		return
	}
	waits := s.waiters[i].pc == tSecond || s.waiters[i].pc == tParked
	switch {
	case p.pc == tBit:
		s.bits[i] = true
		p.pc = tLook
		return
	case s.messages[i] > 0:
		s.woken[i] = s.woken[i] || waits
	case waits && p.pc == tHandle:
		p.pc = tBit
		return
	}
	p.unhandled &^= 1 << i
	p.pc = tHandle
}

// reap performs the next step in s of the reaper, which wakes the participant for all topics
// after a death. It returns false if there was none.
func (c Topics) reap(s *topicState) bool {
	r := &s.reaper
	if r.pc == tOver {
		if s.owed == 0 {
			return false
		}
		s.owed--
		if r.pc = tRing; c.Bug == TopicMute {
			r.pc = tOver
		}
		return true
	}
	set := uint8(allTopics)
	if c.Bug == TopicOneTopic {
		set = 1
	}
	c.ring(s, r, set)
	return true
}

func (c Topics) done(s *topicState) error {
	for i, n := range s.messages {
		if n > 0 {
			return fmt.Errorf("the waiter of topic %d sleeps while %d messages are there", i, n)
		}
	}
	return nil
}
