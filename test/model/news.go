package model

import (
	"errors"
	"fmt"
)

// The news model: two writers store values one after another, under a mutex that is released when
// its owner dies. Two readers load the newest value. A store drops the old messages, puts its own,
// drops again and looks up its version. A load examines one slot after another, from the tail down.
// Writers may be killed. A reaper repairs their slots some time later.
//
// Invariants:
//   - Every load finds a value.
//   - A load must not return a version older than one that was returned before the load began.
//   - Every store finds a message when it looks up its version.

const (
	newsWriters = 2
	newsActors  = newsWriters + 2
	newsTickets = 6 // and as many slots: for a reader, a slot of a later lap counts as dropped
)

// A newsSlot is the word of a slot. It only increases.
type newsSlot uint8

const (
	newsEmpty newsSlot = iota
	newsWriting
	newsFull
	newsReading
	newsSkip
	newsGone // the slot of the next lap
)

type newsPC uint8

const (
	nwIdle newsPC = iota
	nwLock
	nwLook   // is there a message besides the newest?
	nwTake   // takes the message at the head
	nwTaken  // the message is removed
	nwClaim  // claims a slot for the new message
	nwTail   // advances the hint
	nwFull   // sets the slot to FULL
	nwTell   // looks up the version and unlocks
	nwBegin  // a load begins
	nwTop    // reads the tail
	nwScan   // examines a slot
	nwPeeked // examines the slot again, with references to the blocks
	nwDead
)

type newsActor struct {
	pc       newsPC
	stored   bool  // it has put its message and drops for the second time
	ticket   uint8 // ticket of its message, or of the message that it removes or examines
	top, sum uint8 // tail and sum of this scan
	last     uint8 // reader: sum of the previous scan + 1, or 0; dead writer: its pc
	floor    uint8 // greatest version returned before the load began
	left     uint8
}

type newsState struct {
	slots      [newsTickets]newsSlot
	tail, head uint8
	owner      uint8 // owner of the mutex + 1
	seen       uint8 // greatest version returned
	kills      uint8
	fault      uint8
	a          [newsActors]newsActor
}

const (
	newsFine = iota
	newsNothing
	newsOlder
)

// A News configures the news model: writers store values and readers load the newest one. Kills
// limits the kills. Bug is a mutation that must be detected, or "".
type News struct {
	Stores, Loads [2]int // of the two writers and the two readers
	Kills         int
	Bug           string
}

// Mutations of the news model.
const (
	NewsOnce     = "a look that finds nothing is believed"
	NewsTail     = "a look that finds nothing is believed if the tail has not moved"
	NewsUp       = "a reader looks from the oldest slot up"
	NewsGreedy   = "a writer drops what is at the head, also if it is the newest"
	NewsFirst    = "a writer drops all messages before it puts its own"
	NewsUnlocked = "writers do not exclude one another"
)

// Model returns the transition system of c, for [Explore]. The first version exists initially.
func (c News) Model() Model[newsState] {
	s := newsState{tail: 1, seen: 1}
	s.slots[0] = newsFull
	for i := range s.a {
		if i < newsWriters {
			s.a[i] = newsActor{pc: nwIdle, left: uint8(c.Stores[i])}
		} else {
			s.a[i] = newsActor{pc: nwBegin, left: uint8(c.Loads[i-newsWriters])}
		}
	}
	return Model[newsState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c News) steps(s newsState, emit func(newsState)) {
	for i := range s.a {
		n := s
		if i < newsWriters {
			if n.a[i].pc == nwDead && n.mend(i) || c.store(&n, i) {
				emit(n)
			}
		} else if c.load(&n, &n.a[i]) {
			emit(n)
		}
	}
}

// events emits the states after a writer is killed. After its slots are repaired, another writer
// takes its place and stores the remaining values.
func (c News) events(s newsState, emit func(newsState)) {
	for i := range newsWriters {
		if n := s; int(s.kills) < c.Kills && s.a[i].pc != nwIdle && s.a[i].pc != nwDead {
			n.kills++
			n.a[i] = newsActor{pc: nwDead, ticket: s.a[i].ticket, left: s.a[i].left, last: uint8(s.a[i].pc)}
			if n.owner == uint8(i+1) {
				n.owner = 0
			}
			emit(n)
		}
	}
}

// mend is the reaper of writer i: it drops messages that the dead writer was writing or reading.
// It always returns true.
func (s *newsState) mend(i int) bool {
	p := &s.a[i]
	w := &s.slots[p.ticket]
	switch died := newsPC(p.last); {
	case (died == nwTail || died == nwFull) && *w == newsWriting:
		*w = newsSkip
	case died == nwTaken && *w == newsReading:
		*w = newsGone
	}
	*p = newsActor{pc: nwIdle, left: p.left}
	return true
}

// newest is the scan of a writer that holds the mutex: a single pass over all slots below top.
// It returns the ticket of the newest message. ok is false if there is no message.
func (s *newsState) newest(top uint8) (ticket uint8, ok bool) {
	for t := int(top) - 1; t >= 0; t-- {
		if s.slots[t] == newsFull {
			return uint8(t), true
		}
	}
	return 0, false
}

func (c News) store(s *newsState, i int) bool {
	p := &s.a[i]
	switch p.pc {
	case nwIdle:
		if p.left == 0 || int(s.tail) == newsTickets {
			return false
		}
		p.left--
		p.pc = nwLock
	case nwLock:
		if c.Bug == NewsUnlocked {
			p.pc = nwLook
			break
		}
		if s.owner != 0 {
			return false
		}
		s.owner = uint8(i + 1)
		p.pc = nwLook
	case nwLook:
		c.decideDrop(s, p)
	case nwTake:
		c.dropMessage(s, p)
	case nwTaken:
		s.slots[p.ticket] = newsGone
		p.pc = nwLook
	case nwClaim:
		switch {
		case int(s.tail) == newsTickets: // another writer claimed the last slot
			p.pc = nwTell
		case s.slots[s.tail] != newsEmpty: // the claimer died before it advanced the tail
			s.tail++
		default:
			p.ticket = s.tail
			s.slots[p.ticket] = newsWriting
			p.pc = nwTail
		}
	case nwTail:
		if s.tail == p.ticket {
			s.tail++
		}
		p.pc = nwFull
	case nwFull:
		s.slots[p.ticket] = newsFull
		p.pc, p.stored = nwLook, true
	case nwTell:
		t, ok := s.newest(s.tail)
		if !ok {
			s.fault = newsNothing
		}
		s.seen = max(s.seen, t+1)
		if s.owner == uint8(i+1) {
			s.owner = 0
		}
		*p = newsActor{pc: nwIdle, left: p.left}
	}
	return true
}

// decideDrop performs a step in s of writer p: it decides whether there is a message to drop.
func (c News) decideDrop(s *newsState, p *newsActor) {
	p.pc = nwClaim
	if p.stored {
		p.pc = nwTell
	}
	t, ok := s.newest(s.tail)
	_, old := s.newest(t)
	if ok && (old || c.Bug == NewsGreedy && p.stored || c.Bug == NewsFirst && !p.stored) {
		p.pc = nwTake
	}
}

// dropMessage performs a step in s of writer p: it removes the message at the head, or skips a
// message that is gone. A message that is being written, even by a dead writer, ends the dropping.
func (c News) dropMessage(s *newsState, p *newsActor) {
	if s.head < s.tail {
		switch s.slots[s.head] {
		case newsFull:
			s.slots[s.head] = newsReading
			p.ticket, p.pc = s.head, nwTaken
			s.head++
			return
		case newsSkip:
			s.slots[s.head] = newsGone
			s.head++
			return
		case newsReading, newsGone:
			s.head++
			return
		}
	}
	p.pc = nwClaim
	if p.stored {
		p.pc = nwTell
	}
}

func (c News) load(s *newsState, p *newsActor) bool {
	switch p.pc {
	case nwBegin:
		if p.left == 0 {
			return false
		}
		p.left--
		p.floor, p.last, p.pc = s.seen, 0, nwTop
	case nwTop:
		p.top, p.ticket, p.sum, p.pc = s.tail, s.tail, s.tail, nwScan
		if c.Bug == NewsUp {
			p.ticket = 0
		}
	case nwScan:
		c.scan(s, p)
	case nwPeeked:
		if s.slots[p.ticket] != newsFull { // the lifetime model shows why references are needed
			*p = newsActor{pc: nwTop, floor: p.floor, left: p.left}
			break
		}
		if p.ticket+1 < p.floor {
			s.fault = newsOlder
		}
		s.seen = max(s.seen, p.ticket+1)
		*p = newsActor{pc: nwBegin, left: p.left}
	}
	return true
}

// scan performs a step in s of reader p: it examines one slot, or ends a scan that has found no
// message. If it believes that there is none, it records a fault.
func (c News) scan(s *newsState, p *newsActor) {
	if end := p.ticket == 0; !end && c.Bug != NewsUp || c.Bug == NewsUp && p.ticket < p.top {
		t := p.ticket - 1
		if c.Bug == NewsUp {
			t = p.ticket
		}
		if s.slots[t] == newsFull {
			p.ticket, p.pc = t, nwPeeked
			return
		}
		p.sum += uint8(s.slots[t])
		if p.ticket = t; c.Bug == NewsUp {
			p.ticket++
		}
		return
	}
	believed := p.last == p.sum+1
	switch c.Bug {
	case NewsOnce:
		believed = true
	case NewsTail:
		believed = s.tail == p.top
	}
	if p.last, p.pc = p.sum+1, nwTop; believed {
		s.fault = newsNothing
	}
}

func (c News) check(s *newsState) error {
	switch s.fault {
	case newsNothing:
		return errors.New("there is no newest message")
	case newsOlder:
		return errors.New("a load returned an older version than somebody had before")
	}
	return nil
}

// done requires that all values are stored, and that at most one message is left in addition to the
// messages of dead writers.
func (c News) done(s *newsState) error {
	full := 0
	for _, w := range s.slots {
		if w == newsFull {
			full++
		}
	}
	if full == 0 || full > 1+int(s.kills) {
		return fmt.Errorf("%d messages are left", full)
	}
	return nil
}
