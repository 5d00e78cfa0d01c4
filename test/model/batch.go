package model

import (
	"errors"
	"fmt"
)

// The batch model: two producers put messages into a ring with few slots, and two consumers take
// several at a time. One CAS on the word of the first slot claims a span of slots. Any of the four
// may be killed. A reaper repairs the span of a dead actor slot by slot and may be killed itself.
//
// Invariants:
//   - An actor must not write a slot that another one has claimed.
//   - The consumers must take the messages of each producer in order, each exactly once, without
//     gaps.
//   - In the end they must have taken all messages that were put. For a killed producer, these are
//     the messages of its completed claims.

const (
	batchPeers  = 2 // producers, and as many consumers
	batchActors = 2 * batchPeers
	batchSlots  = 4 // maximum number of slots
)

type batchStatus uint8

const (
	batchEmpty batchStatus = iota
	batchWriting
	batchFull
	batchReading
	batchSkip
)

// A batchSlot is the word of a ring's slot and its message: message id of producer from.
type batchSlot struct {
	lap    uint8
	status batchStatus
	span   uint8
	by     uint8 // claiming actor + 1
	from   uint8
	id     uint8
}

type batchPC uint8

const (
	btIdle batchPC = iota
	btLook         // inspects the slots from the ticket on
	btClaim
	btMove // advances the hint
	btFill // fills or returns slot by slot, the first one last
	btDead // steps are performed by its reaper
)

type batchActor struct {
	pc   batchPC
	tk   uint8
	n    uint8
	step uint8 // slots filled, returned or repaired
	next uint8 // producer: number of its next message
	left uint8 // messages to put
	word batchSlot
}

type batchState struct {
	slots      [batchSlots]batchSlot
	tail, head uint8
	kills      uint8
	next       [batchPeers]uint8 // number of the next message that a get may claim
	fault      uint8
	a          [batchActors]batchActor
}

const (
	batchFine = iota
	batchTwice
	batchGap
	batchOver
)

// A Batch configures the batch model: one claim takes several slots of a ring. Kills limits the
// kills. Bug is a mutation that must be detected, or "".
type Batch struct {
	Slots int    // 2 or 4
	Puts  [2]int // messages of each producer
	Most  [2]int // maximum claims of producers and consumers
	Kills int
	Bug   string
}

// Mutations of the batch model.
const (
	BatchTail     = "a put that finds a span being written moves the tail by one"
	BatchHead     = "a get that finds a span being read moves the head by one"
	BatchBlind    = "a put claims slots that it has not looked at"
	BatchFirst    = "the first slot is FULL before the others"
	BatchBack     = "the first slot is given back before the others"
	BatchHole     = "the reaper makes a hole of the first slot alone"
	BatchHoles    = "the reaper makes a hole of the first slot before the others"
	BatchHalf     = "the reaper leaves what the dead had filled"
	BatchUnread   = "the reaper gives the first slot back alone"
	BatchReadLast = "the reaper gives the first slot back before the others"
)

// Model returns the transition system of c, for [Explore].
func (c Batch) Model() Model[batchState] {
	var s batchState
	for i := range batchPeers {
		s.a[i].left = uint8(c.Puts[i])
	}
	return Model[batchState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Batch) slot(s *batchState, tk uint8) *batchSlot { return &s.slots[int(tk)%c.Slots] }
func (c Batch) lap(tk uint8) uint8                      { return tk / uint8(c.Slots) }

func (c Batch) steps(s batchState, emit func(batchState)) {
	for i := range s.a {
		n, step := s, c.get
		switch {
		case s.a[i].pc == btDead:
			step = c.reap
		case i < batchPeers:
			step = c.put
		}
		if step(&n, i) {
			emit(n)
		}
	}
}

// events emits the states after an actor is killed in the middle of an operation. The reaper may
// be killed as well; then another one starts from the beginning.
func (c Batch) events(s batchState, emit func(batchState)) {
	for i := range s.a {
		n, p := s, s.a[i]
		if int(s.kills) < c.Kills && (p.pc == btMove || p.pc == btFill || p.pc == btDead && p.step > 0) {
			n.kills++
			n.a[i].pc, n.a[i].step = btDead, 0
			emit(n)
		}
	}
}

// floor returns the greatest power of two that is at most n, which must not be 0.
func floor(n uint8) uint8 {
	p := uint8(1)
	for 2*p <= n {
		p *= 2
	}
	return p
}

// taken returns the number of slots that a hint must advance past a used slot: the span of w if
// it is the slot of ticket tk and has the status, and otherwise 1. It is always 1 with the
// mutation bug.
func (c Batch) taken(w batchSlot, tk uint8, status batchStatus, bug string) uint8 {
	switch {
	case c.Bug == bug:
		return 1
	case w.lap == c.lap(tk) && w.status == status:
		return w.span
	}
	return 1
}

func (c Batch) put(s *batchState, i int) bool {
	p := &s.a[i]
	switch p.pc {
	case btIdle:
		if p.left == 0 {
			return false
		}
		p.tk, p.pc = s.tail, btLook
	case btLook:
		w := *c.slot(s, p.tk)
		if w.lap < c.lap(p.tk) && s.tail == p.tk { // full: wait for the slot
			return false
		}
		p.n = 1
		for p.n < p.left && int(p.n) < min(c.Most[0], c.Slots) {
			w := *c.slot(s, p.tk+p.n)
			if c.Bug != BatchBlind && (w.lap != c.lap(p.tk+p.n) || w.status != batchEmpty) {
				break
			}
			p.n++
		}
		p.n, p.pc = floor(p.n), btClaim
	case btClaim:
		w := c.slot(s, p.tk)
		switch {
		case w.lap == c.lap(p.tk) && w.status == batchEmpty:
			*w = batchSlot{lap: w.lap, status: batchWriting, span: p.n, by: uint8(i + 1)}
			p.pc = btMove
		case w.lap >= c.lap(p.tk):
			if n := c.taken(*w, p.tk, batchWriting, BatchTail); s.tail == p.tk {
				s.tail += n
			}
			p.tk, p.n, p.pc = 0, 0, btIdle
		default:
			p.tk, p.n, p.pc = 0, 0, btIdle
		}
	case btMove:
		if s.tail == p.tk {
			s.tail += p.n
		}
		p.pc = btFill
	case btFill:
		c.fill(s, p, uint8(i))
	}
	return true
}

// fill writes the next message of producer i, with state p, into s. It fills the first slot of
// the producer's span last; see [Batch.turn]. It records a fault if the slot is not i's.
func (c Batch) fill(s *batchState, p *batchActor, i uint8) {
	at := c.turn(p, BatchFirst)
	w := c.slot(s, p.tk+at)
	if w.lap != c.lap(p.tk+at) || at > 0 && w.status != batchEmpty || at == 0 && w.by != i+1 {
		s.fault = batchOver
	}
	*w = batchSlot{lap: c.lap(p.tk + at), status: batchFull, span: 1, by: i + 1, from: i, id: p.next + at}
	if p.step++; p.step == p.n {
		*p = batchActor{next: p.next + p.n, left: p.left - p.n}
	}
}

// turn returns the index of the next slot of p's span: the first slot, 0, comes last, except
// with the mutation bug.
func (c Batch) turn(p *batchActor, bug string) uint8 {
	if c.Bug == bug {
		return p.step
	}
	return (p.step + 1) % p.n
}

func (c Batch) get(s *batchState, i int) bool {
	p := &s.a[i]
	switch p.pc {
	case btIdle:
		if !c.pending(s) {
			return false
		}
		p.tk, p.pc = s.head, btLook
	case btLook:
		p.word, p.n = *c.slot(s, p.tk), 0
		for int(p.n) < min(c.Most[1], c.Slots) {
			if w := *c.slot(s, p.tk+p.n); w.lap != c.lap(p.tk+p.n) || w.status != batchFull {
				break
			}
			p.n++
		}
		if p.pc = btClaim; p.n > 0 {
			p.n = floor(p.n)
		}
	case btClaim:
		c.claimRead(s, p, i)
	case btMove:
		if s.head == p.tk {
			s.head += p.n
		}
		p.pc = btFill
	case btFill:
		at := c.turn(p, BatchBack)
		w := c.slot(s, p.tk+at)
		*w = batchSlot{lap: c.lap(p.tk+at) + 1}
		if p.step++; p.step == p.n {
			*p = batchActor{}
		}
	}
	return true
}

// pending reports whether a get can make progress. A wait is a step that is not enabled.
func (c Batch) pending(s *batchState) bool {
	w, lap := *c.slot(s, s.head), c.lap(s.head)
	return w.lap > lap || w.lap == lap && w.status >= batchFull
}

func (c Batch) claimRead(s *batchState, p *batchActor, i int) {
	w, lap := c.slot(s, p.tk), c.lap(p.tk)
	switch {
	case p.n > 0 && *w == p.word:
		for at := range p.n {
			s.recordDelivery(*c.slot(s, p.tk+at))
		}
		w.status, w.span, w.by = batchReading, p.n, uint8(i+1)
		p.word, p.pc = batchSlot{}, btMove
		return
	case p.n > 0: // another actor was faster
	case w.lap == lap && w.status == batchSkip:
		*w = batchSlot{lap: lap + 1}
		if s.head == p.tk {
			s.head++
		}
	case w.lap > lap || w.lap == lap && w.status == batchReading:
		if n := c.taken(*w, p.tk, batchReading, BatchHead); s.head == p.tk {
			s.head += n
		}
	}
	*p = batchActor{}
}

func (s *batchState) recordDelivery(w batchSlot) {
	switch next := &s.next[w.from]; {
	case w.id < *next:
		s.fault = batchTwice
	case w.id > *next:
		s.fault = batchGap
	default:
		*next++
	}
}

// reap repairs one slot in the span of the dead actor i, and lets a successor begin after the
// last one. The successor of a producer has nothing to put. The successor of a consumer takes
// messages. reap always returns true.
func (c Batch) reap(s *batchState, i int) bool {
	p := &s.a[i]
	w := *c.slot(s, p.tk)
	if ended := w.by != uint8(i+1) || w.status != batchWriting && w.status != batchReading; ended && p.step == 0 {
		*p = batchActor{next: p.next}
		return true
	}
	bug, alone := BatchHoles, c.Bug == BatchHole
	if i >= batchPeers {
		bug, alone = BatchReadLast, c.Bug == BatchUnread
	}
	if at := c.turn(p, bug); at == 0 || !alone {
		c.mend(c.slot(s, p.tk+at), c.lap(p.tk+at), i < batchPeers, at == 0)
	}
	if p.step++; p.step == p.n {
		p.step = 0
	}
	return true
}

func (c Batch) mend(w *batchSlot, lap uint8, writing, first bool) {
	switch {
	case w.lap != lap:
	case !writing:
		if first || w.status == batchFull {
			*w = batchSlot{lap: lap + 1}
		}
	case first || w.status == batchEmpty || w.status == batchFull && c.Bug != BatchHalf:
		*w = batchSlot{lap: lap, status: batchSkip}
	}
}

func (c Batch) check(s *batchState) error {
	switch s.fault {
	case batchTwice:
		return errors.New("a message is taken twice")
	case batchGap:
		return errors.New("a message is taken before the one before it")
	case batchOver:
		return errors.New("a slot is written that is another's")
	}
	return nil
}

// done returns an error unless the ring of s is empty and the messages of each producer are all
// put and taken.
func (c Batch) done(s *batchState) error {
	for i, w := range s.slots[:c.Slots] {
		if w.status != batchEmpty && w.status != batchSkip {
			return fmt.Errorf("slot %d is left in state %d of actor %d", i, w.status, w.by-1)
		}
	}
	for i := range batchPeers {
		if p := s.a[i]; p.left > 0 || p.next != s.next[i] {
			return fmt.Errorf("producer %d has %d to put, %d are put and %d taken", i, p.left, p.next, s.next[i])
		}
	}
	return nil
}
