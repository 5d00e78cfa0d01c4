package model

import (
	"errors"
	"fmt"
)

// The lease model: a producer puts messages into a ring of few slots. Consumers take them by get,
// or lease them and then acknowledge or return them. A waiting consumer sleeps until another
// participant wakes it. The producer, the consumers and the reaper may be killed anywhere; a new
// participant takes over a free seat and uses the same lane.
//
// The id of a message is its ticket. A put is one step on the slot's word: the batch model covers a
// slot that is being written.
//
// Invariants:
//   - Two participants must not have the same message at the same time, and an acknowledged message
//     must not be taken again.
//   - The lease of a living participant must not end without it.
//   - New messages must be taken in the order of their puts. A get must not take a message if an
//     older one was returned, and the return counted, before the get began.
//   - A put must not overwrite a message.
//   - A consumer must not find the ring finished before each message was acknowledged or taken by a
//     get.
//   - In the end no message may remain, and no consumer may wait.

const (
	leaseSlots     = 2
	leaseConsumers = 3
	leaseProducer  = leaseConsumers // index of the producer
	leaseActors    = leaseConsumers + 1
)

type leaseStatus uint8

const (
	leaseEmpty leaseStatus = iota
	leaseFull
	leaseReading
	leaseLeased
)

// A leaseSlot is the word of a ring's slot.
type leaseSlot struct {
	lap    uint8
	status leaseStatus
	by     uint8 // claiming actor + 1
}

type leasePC uint8

const (
	lsIdle leasePC = iota
	// a get or a lease
	lsFlag    // sets the ring's flag LEASES
	lsReturns // reads the word of returns
	lsRange   // reads the head, the end of its search for returned messages
	lsScan    // examines a slot behind the head
	lsMark    // marks the returns as looked for
	lsHead    // reads the head
	lsLook    // examines the slot at the head
	lsMove    // advances the head past its own message
	lsPass    // advances the head past another message
	lsAgain   // examines the slot again that it has passed
	lsFinish  // reads the flag of a ring without further puts
	lsOpen    // reads the head, the end of its search for messages that may return
	lsOpenAt  // examines a slot for that
	lsPark    // announces that it sleeps
	lsCheck   // looks at the ring before it sleeps
	lsAsleep
	lsRead // a message in READING is given back
	lsHeld // a lease is held
	lsReturn
	lsCount
	lsWake
	lsOver
	// the producer
	lsPut
	lsTail
	lsEnd
	// the reaper of an actor
	lsSlots
	lsReapCount
	lsReapWake
	lsGets
	lsFree
)

type leaseActor struct {
	process
	pc    leasePC
	then  leasePC // pc after lsPass and lsWake
	lease bool    // the operation is a lease
	ended bool    // this operation has seen that no put can follow
	tk    uint8   // ticket that it examines, or of its message
	end   uint8
	count [2]uint8 // its copy of the word of returns
	word  leaseSlot
	older uint8 // messages that were returned before the operation began
}

type leaseState struct {
	slots      [leaseSlots]leaseSlot
	tail, head uint8
	returns    [2]uint8 // returns, and returns that gets have looked for
	leases     bool     // flag LEASES
	finished   bool     // no put can follow
	asleep     uint8    // consumers that have announced that they sleep
	kills      uint8
	returned   uint8 // number of returns by living consumers
	// not part of the protocol
	put     uint8 // messages put
	next    uint8 // next message that is taken for the first time
	ended   uint8 // messages acknowledged, or taken by a get
	counted uint8 // messages behind the head that were returned, with a counted return
	fault   uint8
	reaper  uint8 // pc of the reaper
	reaped  uint8 // actor that it reaps
	at      uint8 // slot that it examines
	a       [leaseActors]leaseActor
}

const (
	leaseFine = iota
	leaseTwice
	leaseStolen
	leaseOrder
	leaseNewer
	leaseOver
	leaseEarly
)

// A Lease configures the lease model: consumers lease messages and acknowledge or return them.
// Kills limits the kills. Bug is a mutation that must be detected, or "".
type Lease struct {
	Consumers int  // at most 3
	Before    int  // messages that are in the ring at the start
	Puts      int  // including these
	Returns   int  // leases that consumers return
	Leaves    bool // a consumer that returns a lease takes no further message
	Gets      bool // consumers also get messages without a lease
	Kills     int
	Bug       string
}

// Mutations of the lease model.
const (
	LeaseCountFirst   = "a return is counted before the slot is FULL"
	LeaseOnce         = "a lane that has passed a LEASED slot does not look at it again"
	LeaseMarkAll      = "a search marks the returns that were counted meanwhile"
	LeaseFlagLate     = "the flag LEASES is set after the claim"
	LeaseOpen         = "a leased message does not keep the ring from being finished"
	LeaseBehind       = "a FULL slot behind the head does not keep the ring from being finished"
	LeaseAckSilent    = "an acknowledgement wakes no waiter"
	LeaseReturnSilent = "a return wakes no waiter"
	LeaseNewFirst     = "a get looks at the head before it looks for returned messages"
	LeaseOverwrite    = "a put takes the slot of a leased message of the lap before"
	LeaseForgotten    = "the reaper leaves the leases of the dead"
	LeaseDropped      = "the reaper drops a leased message"
	LeaseUncounted    = "the reaper counts no return"
	LeaseReapCount    = "the reaper counts a return before it makes the slots FULL"
	LeaseSeat         = "the reaper frees the seat before it looks at the slots"
	LeaseAll          = "the reaper returns the leases of the living"
	LeaseUndone       = "the reaper returns a message that the dead had acknowledged"
)

// Model returns the transition system of c, for [Explore].
func (c Lease) Model() Model[leaseState] {
	var s leaseState
	for i := c.Consumers; i < leaseConsumers; i++ {
		s.a[i].pc = lsOver
	}
	for i := range c.Before {
		s.slots[i].status = leaseFull
	}
	s.put, s.tail, s.finished = uint8(c.Before), uint8(c.Before), c.Before == c.Puts
	if s.a[leaseProducer].pc = lsPut; s.finished {
		s.a[leaseProducer].pc = lsOver
	}
	return Model[leaseState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func leaseLap(tk uint8) uint8 { return tk / leaseSlots }

func (s *leaseState) slot(tk uint8) *leaseSlot { return &s.slots[tk%leaseSlots] }

// ticket returns the ticket of the message in slot i.
func (s *leaseState) ticket(i int) uint8 { return s.slots[i].lap*leaseSlots + uint8(i) }

// behind returns the FULL messages behind the head, as a bit set of tickets.
func (s *leaseState) behind() (set uint8) {
	for i, w := range s.slots {
		if tk := s.ticket(i); w.status == leaseFull && tk < s.head {
			set |= 1 << tk
		}
	}
	return set
}

// outstanding reports whether a message behind the head is LEASED or FULL. The messages behind
// the head have smaller tickets. outstanding returns false if the ring has had no lease.
func (s *leaseState) outstanding() bool {
	for i, w := range s.slots {
		if s.ticket(i) < s.head && (w.status == leaseLeased || w.status == leaseFull) {
			return s.leases
		}
	}
	return false
}

func (c Lease) steps(s leaseState, emit func(leaseState)) {
	for i := range s.a {
		p := &s.a[i]
		switch {
		case p.is(reaped):
			n := s
			n.a[i] = leaseActor{}
			if i == leaseProducer {
				n.a[i].pc = lsPut
			}
			emit(n)
		case !p.lives():
		case i == leaseProducer:
			if n := s; c.produce(&n, &n.a[i]) {
				emit(n)
			}
		default:
			c.consume(s, i, emit)
		}
	}
	if n := s; c.reap(&n) {
		emit(n)
	}
}

// events emits the states after an actor is killed, at any of its steps, or the reaper, which
// another one replaces from the beginning.
func (c Lease) events(s leaseState, emit func(leaseState)) {
	if int(s.kills) == c.Kills {
		return
	}
	s.kills++
	for i := range s.a {
		if n := s; s.a[i].lives() && s.a[i].pc != lsOver {
			n.a[i] = leaseActor{process: process{killed}, pc: s.a[i].pc}
			n.asleep &^= 1 << i
			emit(n)
		}
	}
	if s.reaper != 0 {
		s.reaper, s.at = 0, 0
		emit(s)
	}
}

// consume emits the states that consumer i can reach from s by one step. In two places it has a
// choice.
func (c Lease) consume(s leaseState, i int, emit func(leaseState)) {
	p := &s.a[i]
	switch p.pc {
	case lsOver:
	case lsAsleep:
		if s.asleep&(1<<i) == 0 {
			s.start(p)
			emit(s)
		}
	case lsIdle:
		if c.Gets {
			n := s
			n.start(&n.a[i])
			emit(n)
		}
		p.lease = true
		s.start(p)
		if !s.leases && c.Bug != LeaseFlagLate {
			p.pc = lsFlag
		}
		emit(s)
	case lsHeld:
		if int(s.returned) < c.Returns {
			n := s
			n.returned++
			n.a[i].pc = lsReturn
			if c.Bug == LeaseCountFirst {
				n.a[i].pc = lsCount
			}
			emit(n)
		}
		s.acknowledge(i)
		emit(s)
	default:
		c.step(&s, i)
		emit(s)
	}
}

// start begins an attempt of p to take a message.
func (s *leaseState) start(p *leaseActor) {
	p.older, p.pc, p.ended = s.counted&s.behind(), lsReturns, false
}

// acknowledge ends the lease of consumer i by a CAS. It records a fault if the lease is not its
// own any more.
func (s *leaseState) acknowledge(i int) {
	p := &s.a[i]
	w := s.slot(p.tk)
	if *w != (leaseSlot{leaseLap(p.tk), leaseLeased, uint8(i + 1)}) {
		s.fault = leaseStolen
		return
	}
	w.status, p.pc = leaseReading, lsRead
	s.ended |= 1 << p.tk
}

func (c Lease) step(s *leaseState, i int) {
	p := &s.a[i]
	switch p.pc {
	case lsFlag:
		s.leases, p.pc = true, lsReturns
		if c.Bug == LeaseFlagLate {
			p.pc = lsHeld
		}
	case lsReturns:
		p.tk, p.pc = 0, lsHead
		if s.returns[0] != s.returns[1] && c.Bug != LeaseNewFirst {
			p.count, p.pc = s.returns, lsRange
		}
	case lsRange:
		p.tk, p.end, p.pc = s.head-min(s.head, leaseSlots), s.head, lsScan
	case lsScan:
		c.scan(s, i)
	case lsMark:
		if c.Bug == LeaseMarkAll {
			s.returns[1] = s.returns[0]
		} else if s.returns == p.count {
			s.returns[1] = p.count[0]
		}
		p.count, p.pc = [2]uint8{}, lsReturns
	case lsHead:
		p.tk, p.pc = s.head, lsLook
	case lsLook:
		c.examineSlot(s, i)
	case lsMove:
		if s.head == p.tk {
			s.head++
		}
		p.pc = lsRead
		if p.lease {
			p.pc = lsHeld
			if c.Bug == LeaseFlagLate {
				p.pc = lsFlag
			}
		}
	case lsPass, lsAgain:
		c.pass(s, p)
	case lsFinish:
		if p.ended, p.pc = s.finished, lsReturns; !s.finished {
			p.older, p.pc = 0, lsPark
		}
	case lsOpen, lsOpenAt:
		c.findOpen(s, p)
	case lsPark:
		s.asleep |= 1 << i
		p.pc = lsCheck
	case lsCheck:
		p.pc = lsAsleep
		if c.readable(s) {
			s.asleep &^= 1 << i
			s.start(p)
		}
	case lsRead:
		*s.slot(p.tk) = leaseSlot{lap: leaseLap(p.tk) + 1}
		silent := !p.lease || !s.finished || c.Bug == LeaseAckSilent
		if *p = (leaseActor{pc: lsWake, then: lsIdle}); silent {
			p.pc, p.then = lsIdle, 0
		}
	case lsReturn, lsCount, lsWake:
		c.giveBack(s, i)
	}
}

// giveBack performs the next step in s of actor i, which returns a lease: it changes the slot,
// counts the return, and wakes the consumers.
func (c Lease) giveBack(s *leaseState, i int) {
	p := &s.a[i]
	switch p.pc {
	case lsReturn:
		if w := s.slot(p.tk); *w != (leaseSlot{leaseLap(p.tk), leaseLeased, uint8(i + 1)}) {
			s.fault = leaseStolen
		} else {
			w.status = leaseFull
		}
		p.pc, p.then = lsCount, lsIdle
		if c.Leaves {
			p.then = lsOver
		}
		if c.Bug == LeaseCountFirst {
			p.pc = lsWake
		}
	case lsCount:
		s.count()
		p.pc = lsWake
		if c.Bug == LeaseCountFirst && p.then == lsIdle {
			p.pc = lsReturn
		}
		if c.Bug == LeaseReturnSilent && p.then == lsOver {
			*p = leaseActor{pc: lsOver}
		}
	case lsWake:
		s.asleep = 0
		if pc := p.then; pc == lsIdle || pc == lsOver {
			*p = leaseActor{pc: pc}
		} else {
			p.then, p.pc = 0, pc
		}
	}
}

func (s *leaseState) count() {
	s.returns[0]++
	s.counted |= s.behind()
}

// scan performs a step in s of consumer i: it examines a slot behind the head, and claims a
// returned message.
func (c Lease) scan(s *leaseState, i int) {
	p := &s.a[i]
	if p.tk == p.end {
		p.tk, p.end, p.pc = 0, 0, lsMark
		return
	}
	if w := s.slot(p.tk); w.lap == leaseLap(p.tk) && w.status == leaseFull {
		s.claim(i, p.tk)
		p.pc, p.end, p.count = lsRead, 0, [2]uint8{}
		if p.lease {
			p.pc = lsHeld
		}
		return
	}
	p.tk++
}

// claim claims the message of ticket tk for consumer i, and records a fault if the consumer must
// not have it.
func (s *leaseState) claim(i int, tk uint8) {
	p, w := &s.a[i], s.slot(tk)
	switch older := p.older & (1<<tk - 1); {
	case s.ended&(1<<tk) != 0:
		s.fault = leaseTwice
	case tk > s.next:
		s.fault = leaseOrder
	case older != 0:
		s.fault = leaseNewer
	}
	s.next = max(s.next, tk+1)
	s.counted &^= 1 << tk
	for j := range s.a { // it is no longer an older message that could be taken
		s.a[j].older &^= 1 << tk
	}
	w.status, w.by = leaseReading, uint8(i+1)
	if p.lease {
		w.status = leaseLeased
	} else {
		s.ended |= 1 << tk
	}
	p.older, p.tk, p.ended = 0, tk, false
}

// examineSlot performs a step in s of consumer i: it examines the slot at the head and sets the
// next step.
func (c Lease) examineSlot(s *leaseState, i int) {
	p := &s.a[i]
	w, lap := *s.slot(p.tk), leaseLap(p.tk)
	switch {
	case w.lap == lap && w.status == leaseFull:
		s.claim(i, p.tk)
		p.pc, p.count = lsMove, [2]uint8{}
	case w.lap > lap || w.lap == lap && (w.status == leaseReading || w.status == leaseLeased):
		p.word, p.pc, p.then = w, lsPass, lsReturns
	case s.head != p.tk:
		p.tk, p.pc = 0, lsReturns
	case c.Bug == LeaseNewFirst && s.returns[0] != s.returns[1]:
		p.count, p.pc = s.returns, lsRange
	case p.ended:
		p.tk, p.pc = 0, lsOpen
	default:
		p.tk, p.pc = 0, lsFinish
	}
}

// pass performs a step in s of p, which advances the head past a slot. It counts a return if the
// slot was LEASED and has changed.
func (c Lease) pass(s *leaseState, p *leaseActor) {
	pc := p.then
	if p.pc == lsPass && s.head == p.tk {
		s.head++
		if w := s.slot(p.tk); w.status == leaseFull && w.lap == leaseLap(p.tk) {
			s.counted &^= 1 << p.tk // it is behind the head from now on
		}
		if p.word.lap == leaseLap(p.tk) && p.word.status == leaseLeased && c.Bug != LeaseOnce {
			p.pc = lsAgain
			return
		}
	} else if p.pc == lsAgain && *s.slot(p.tk) != p.word {
		p.word, p.pc = leaseSlot{}, lsCount
		return
	}
	p.word, p.tk, p.then, p.pc = leaseSlot{}, 0, 0, pc
}

// findOpen performs a step in s of p, which examines the slots behind the head for a message
// that may return. p then waits for it; without one, p ends.
func (c Lease) findOpen(s *leaseState, p *leaseActor) {
	if p.pc == lsOpen {
		p.tk, p.end, p.pc = s.head-min(s.head, leaseSlots), s.head, lsOpenAt
		if !s.leases {
			p.tk = p.end
		}
		return
	}
	if p.tk == p.end {
		if s.ended != 1<<c.Puts-1 {
			s.fault = leaseEarly
		}
		*p = leaseActor{pc: lsOver}
		return
	}
	w := *s.slot(p.tk)
	leased := w.status == leaseLeased && c.Bug != LeaseOpen
	full := w.status == leaseFull && c.Bug != LeaseBehind
	if w.lap == leaseLap(p.tk) && (leased || full) {
		p.tk, p.end, p.older, p.ended, p.pc = 0, 0, 0, false, lsPark
		return
	}
	p.tk++
}

// readable reports whether a get would not have to wait.
func (c Lease) readable(s *leaseState) bool {
	w, lap := *s.slot(s.head), leaseLap(s.head)
	return s.returns[0] != s.returns[1] || w.lap > lap || w.lap == lap && w.status != leaseEmpty ||
		s.finished && !s.outstanding()
}

// produce performs the next step in s of the producer p. It returns false if the producer must
// wait for a slot or has ended.
func (c Lease) produce(s *leaseState, p *leaseActor) bool {
	switch p.pc {
	case lsOver:
		return false
	case lsPut:
		return c.putMessage(s, p)
	case lsTail:
		if s.tail == p.tk {
			s.tail++
		}
		p.pc, p.then, p.tk = lsWake, lsPut, 0
	case lsEnd:
		s.finished = true
		p.pc, p.then = lsWake, lsOver
	case lsPass, lsAgain:
		c.pass(s, p)
	case lsCount, lsWake:
		c.giveBack(s, leaseProducer)
	}
	return true
}

func (c Lease) putMessage(s *leaseState, p *leaseActor) bool {
	tk := s.tail
	if int(s.put) == c.Puts && int(tk) == c.Puts {
		p.pc = lsEnd
		return true
	}
	w, lap := s.slot(tk), leaseLap(tk)
	if tk >= s.head+leaseSlots {
		h := *s.slot(s.head)
		if h.lap < leaseLap(s.head) || h.lap == leaseLap(s.head) && h.status <= leaseFull {
			return false
		}
		p.tk, p.word, p.pc, p.then = s.head, h, lsPass, lsPut
		return true
	}
	empty := *w == leaseSlot{lap: lap}
	if c.Bug == LeaseOverwrite && w.lap+1 == lap && w.status == leaseLeased {
		empty, s.fault = true, leaseOver
	}
	switch {
	case empty:
		*w = leaseSlot{lap: lap, status: leaseFull}
		s.put++
	case w.lap < lap:
		return false
	}
	p.tk, p.pc = tk, lsTail
	return true
}

func (c Lease) check(s *leaseState) error {
	switch s.fault {
	case leaseTwice:
		return errors.New("a message is taken again that was acknowledged")
	case leaseStolen:
		return errors.New("the lease of a living participant has ended")
	case leaseOrder:
		return errors.New("a message is taken before the one before it")
	case leaseNewer:
		return errors.New("a message is taken before an older one that was returned")
	case leaseOver:
		return errors.New("a leased message is overwritten")
	case leaseEarly:
		return errors.New("the ring is finished and a message is not acknowledged")
	}
	if s.returns[1] > s.returns[0] {
		return fmt.Errorf("gets have looked for %d returns of %d", s.returns[1], s.returns[0])
	}
	return nil
}

// done requires that each message was put and ended, and that no consumer waits.
func (c Lease) done(s *leaseState) error {
	if int(s.put) != c.Puts || s.ended != 1<<c.Puts-1 {
		return fmt.Errorf("%d messages are put, and the set %b has ended", s.put, s.ended)
	}
	for i := range s.a {
		if s.a[i].pc != lsOver {
			return fmt.Errorf("participant %d waits", i)
		}
	}
	if s.head != s.tail {
		return fmt.Errorf("%d messages are counted in an empty ring", s.tail-s.head)
	}
	return nil
}
