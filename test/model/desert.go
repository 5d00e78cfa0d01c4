package model

import "fmt"

// The desert model: messages without a receiver. The receiving end of a ring is closed, and its
// finaliser marks the ring and removes its messages, while two senders put one message each. Any of
// them may be killed, and a reaper completes its operation. The reaper may be killed as well; its
// successor starts from the beginning.

type desertPC uint8

const (
	unLook  desertPC = iota // put: is there a receiver? finaliser: start
	unClaim                 // a slot becomes WRITING
	unCheck                 // put: is there still a receiver?
	unFull                  // the message is in the ring
	unAgain                 // put: check once more; finaliser: mark the ring
	unNext                  // a drain takes the next message
	unRead                  // it has a message and releases it
	unEnd
)

const (
	putters   = 2
	finaliser = putters // process number
	reaping   = putters + 1
)

type desertSlot struct {
	state slotState
	by    uint8 // the process that writes or reads
}

type desertUser struct {
	process
	pc   desertPC
	slot uint8 // slot that it writes or reads
}

type desertState struct {
	gone       bool // there is no receiver
	slots      [putters]desertSlot
	tail, head uint8
	p          [reaping + 1]desertUser // the last one is the reaper
	dead       uint8                   // the process being reaped + 1
	kills      toll
	lost       toll
}

// A Desert configures the desert model: the receiver of a ring ends while messages are put. Bug
// is a mutation that must be detected, or "".
type Desert struct {
	Kills   int // kills of senders and the finaliser
	Reapers int // kills of the reaper
	Bug     string
}

// Mutations of the desert model.
const (
	PutLooksOnce   = "a put does not look whether there is a receiver when its message is in the ring"
	EarlyLook      = "a put looks before its message is in the ring"
	EarlyDrain     = "the finaliser takes the messages out before it says that there is no receiver"
	KeepsUnread    = "the finaliser takes no messages out"
	ReaperNoDesert = "the reaper does not take out what a dead sender has left"
)

// Model returns the transition system of c, for [Explore].
func (c Desert) Model() Model[desertState] {
	var s desertState
	s.p[reaping].pc = unEnd
	return Model[desertState]{Init: s, Steps: c.steps, Events: c.events,
		Check: func(*desertState) error { return nil }, Done: c.done}
}

func (c Desert) steps(s desertState, emit func(desertState)) {
	for i := range s.p {
		n := s
		ok := false
		switch {
		case !n.p[i].lives():
		case i < putters:
			ok = c.put(&n, i)
		case i == finaliser:
			ok = c.finalise(&n, i)
		default:
			ok = c.reap(&n)
		}
		if ok {
			emit(n)
		}
	}
}

func (c Desert) events(s desertState, emit func(desertState)) {
	for i := range reaping {
		if n := s; n.p[i].pc != unEnd && n.kills.kill(&n.p[i].process, c.Kills) {
			emit(n)
		}
	}
	if n := s; n.dead > 0 && int(n.lost) < c.Reapers {
		n.lost++
		for i := range n.slots { // the next reaper completes the read of this one
			if n.slots[i] == (desertSlot{reading, reaping}) {
				n.slots[i].state = empty
			}
		}
		n.dead, n.p[reaping].pc = 0, unEnd
		emit(n)
	}
}

// put performs the next step in s of sender i. It returns false after the last step.
func (c Desert) put(s *desertState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case unLook:
		p.pc = unClaim
		if s.gone {
			p.pc = unEnd
		}
	case unClaim:
		p.slot = s.tail
		s.slots[p.slot] = desertSlot{writing, uint8(i)}
		s.tail++
		p.pc = unCheck
	case unCheck:
		switch {
		case s.gone:
			s.slots[p.slot].state = skip
			p.pc = unNext
		case c.Bug == EarlyLook:
			p.pc = unAgain
		default:
			p.pc = unFull
		}
	case unFull:
		s.slots[p.slot].state = full
		p.pc = unAgain
		if c.Bug == EarlyLook || c.Bug == PutLooksOnce {
			p.pc = unEnd
		}
	case unAgain:
		switch {
		case c.Bug == EarlyLook && !s.gone:
			p.pc = unFull
		case s.gone:
			p.pc = unNext
		default:
			p.pc = unEnd
		}
	default:
		return s.drain(i)
	}
	return true
}

// finalise performs the next step in s of the finaliser, process i. It returns false after the
// last step.
func (c Desert) finalise(s *desertState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case unLook:
		p.pc = unAgain
		if c.Bug == EarlyDrain {
			p.pc = unNext
		}
	case unAgain:
		s.gone = true
		p.pc = unNext
		if c.Bug == EarlyDrain || c.Bug == KeepsUnread {
			p.pc = unEnd
		}
	default:
		ok := s.drain(i)
		if c.Bug == EarlyDrain && ok && p.pc == unEnd && !s.gone {
			p.pc = unAgain
		}
		return ok
	}
	return true
}

// drain performs the next step of process i, which removes all messages from the ring. It
// returns false after the last step.
func (s *desertState) drain(i int) bool {
	p := &s.p[i]
	switch p.pc {
	case unNext:
		if s.head == s.tail {
			p.pc = unEnd
			return true
		}
		switch at := &s.slots[s.head]; at.state {
		case full:
			*at = desertSlot{reading, uint8(i)}
			p.slot, p.pc = s.head, unRead
			s.head++
		case writing: // its sender checks after the write
			p.pc = unEnd
		default:
			s.head++
		}
	case unRead:
		s.slots[p.slot].state = empty
		p.pc = unNext
	default:
		return false
	}
	return true
}

// reap performs the next step in s of the reaper, which handles one dead process after another.
// It returns false if there is none.
func (c Desert) reap(s *desertState) bool {
	r := &s.p[reaping]
	if s.dead == 0 {
		for i := range reaping {
			if s.p[i].is(killed) || s.p[i].is(marked) {
				s.p[i].life = marked
				s.dead, r.pc = uint8(i+1), unLook
				return true
			}
		}
		return false
	}
	who := s.dead - 1
	switch r.pc {
	case unLook: // slots
		for i := range s.slots {
			switch s.slots[i] {
			case desertSlot{writing, who}:
				s.slots[i].state = skip
			case desertSlot{reading, who}:
				s.slots[i].state = empty
			}
		}
		r.pc = unAgain
	case unAgain:
		switch {
		case who == finaliser: // tries to free the end again
			s.gone = true
			r.pc = unNext
		case s.gone && c.Bug != ReaperNoDesert:
			r.pc = unNext
		default:
			r.pc = unEnd
		}
	case unEnd:
		s.p[who].life = reaped
		s.dead = 0
	default:
		return s.drain(reaping)
	}
	return true
}

// done requires that no message is left.
func (c Desert) done(s *desertState) error {
	if !s.gone {
		return fmt.Errorf("nobody has said that there is no receiver")
	}
	for i, at := range s.slots {
		if at.state != empty && at.state != skip {
			return fmt.Errorf("message %d is left", i)
		}
	}
	return nil
}
