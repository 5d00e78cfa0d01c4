package model

import "fmt"

// The blame model: the process named as the cause when a queue ends. Two users hold the token of an
// end. Each closes it in order or is killed at any step. A parent also holds the token for a
// process that it has started: it releases it at any time and never uses the end. A reaper releases
// the references of the dead. It may be killed; its successor starts from the beginning.
//
// The word of the ring names one dead holder. The name is valid once the token is gone.

type blamePC uint8

const (
	gHolds  blamePC = iota // uses the end
	gClears                // has begun to close the end and clears the name
	gDrops                 // clears its bit
	gTries                 // checks whether it was the last
	gEnd
)

const blamers = 2

type blameUser struct {
	process
	pc    blamePC
	clean bool // ghost: its close began after all deaths were reaped, and no user has died since
	mute  bool // ghost: it was killed while it was the only living user of the end
}

type blameState struct {
	own   uint8 // bits of the users and the parent
	said  uint8 // name in the ring: user number + 1, or 0
	gone  bool  // the token is gone
	found uint8 // the name at that time
	p     [blamers]blameUser
	s     blamePC // state of the parent
	r     struct {
		pc   blamePC
		who  uint8
		busy bool
	}
	kills, lost toll
}

// A Blame configures the blame model: the process that is named as the cause when a queue ends.
// Bug is a mutation that must be detected, or "".
type Blame struct {
	Kills   int // kills of users
	Reapers int // kills of the reaper
	Bug     string
}

// Mutations of the blame model.
const (
	BlameAlone    = "the reaper writes the name only if nobody living holds the end"
	BlameLate     = "the reaper writes the name when the bit is gone"
	NoTakeBack    = "a close leaves the name of an earlier death"
	LateTakeBack  = "a close takes the name back when its bit is gone"
	CourierClears = "a starter that lets go takes the name back"
)

const starterBit = 1 << blamers

// Model returns the transition system of c, for [Explore].
func (c Blame) Model() Model[blameState] {
	s := blameState{own: 1<<(blamers+1) - 1}
	return Model[blameState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Blame) steps(s blameState, emit func(blameState)) {
	for i := range s.p {
		if n := s; n.p[i].lives() && c.close(&n, i) {
			emit(n)
		}
	}
	if n := s; c.letGo(&n) {
		emit(n)
	}
	if n := s; c.reap(&n) {
		emit(n)
	}
}

func (c Blame) events(s blameState, emit func(blameState)) {
	for i := range s.p {
		n := s
		if !n.kills.kill(&n.p[i].process, c.Kills) {
			continue
		}
		n.p[i].mute = n.p[i].pc == gHolds
		for j := range n.p {
			n.p[j].clean = false
			n.p[i].mute = n.p[i].mute && (j == i || n.own>>j&1 == 0 || !n.p[j].lives())
		}
		emit(n)
	}
	if n := s; n.r.busy && int(n.lost) < c.Reapers {
		n.lost++
		n.r = blameState{}.r
		emit(n)
	}
}

// close performs the next step in s of user i, which closes the end. It may begin at any time.
// It returns false after the last step.
func (c Blame) close(s *blameState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case gHolds:
		p.clean = true
		for j := range s.p {
			p.clean = p.clean && (s.p[j].lives() || s.own>>j&1 == 0)
		}
		p.pc = gClears
		if c.Bug == NoTakeBack || c.Bug == LateTakeBack {
			p.pc = gDrops
		}
	case gClears:
		s.said = 0
		p.pc = gDrops
		if c.Bug == LateTakeBack {
			p.pc = gEnd
		}
	case gDrops:
		s.own &^= 1 << i
		p.pc = gTries
	case gTries:
		s.tryFree()
		p.pc = gEnd
		if c.Bug == LateTakeBack {
			p.pc = gClears
		}
	default:
		return false
	}
	return true
}

// letGo performs the next step in s of the parent, which releases its reference. It returns
// false after the last step.
func (c Blame) letGo(s *blameState) bool {
	switch s.s {
	case gHolds:
		if c.Bug == CourierClears {
			s.said = 0
		}
		s.s = gDrops
	case gDrops:
		s.own &^= starterBit
		s.s = gTries
	case gTries:
		s.tryFree()
		s.s = gEnd
	default:
		return false
	}
	return true
}

// reap performs the next step in s of the reaper, which handles one dead user after another. It
// returns false if there is none.
func (c Blame) reap(s *blameState) bool {
	r := &s.r
	if !r.busy {
		for i := range s.p {
			if s.p[i].is(killed) || s.p[i].is(marked) {
				s.p[i].life = marked
				r.busy, r.who, r.pc = true, uint8(i), gClears
				if s.own>>i&1 == 0 {
					r.pc = gTries // it died after its drop, or an earlier reaper cleared the bit
				}
				return true
			}
		}
		return false
	}
	bit := uint8(1) << r.who
	switch r.pc {
	case gClears:
		if c.Bug != BlameLate && (c.Bug != BlameAlone || !s.heldByLiving()) {
			s.said = r.who + 1
		}
		r.pc = gDrops
	case gDrops:
		s.own &^= bit
		r.pc = gTries
	case gTries:
		if c.Bug == BlameLate && !s.gone {
			s.said = r.who + 1
		}
		s.tryFree()
		r.pc = gEnd
	case gEnd:
		s.p[r.who].life = reaped
		*r = blameState{}.r
	}
	return true
}

// heldByLiving reports whether a living user or the parent has its bit set.
func (s *blameState) heldByLiving() bool {
	held := s.own & starterBit
	for i := range s.p {
		if s.p[i].lives() {
			held |= s.own & (1 << i)
		}
	}
	return held != 0
}

// tryFree ends the token if it has no holder. From then on, waiting processes read the name.
func (s *blameState) tryFree() {
	if s.own == 0 && !s.gone {
		s.gone, s.found = true, s.said
	}
}

// check compares the name in s, once the token is gone, with the actual events.
func (c Blame) check(s *blameState) error {
	if !s.gone {
		return nil
	}
	for i := range s.p {
		switch p := &s.p[i]; {
		case p.mute && s.found == 0:
			return fmt.Errorf("user %d was the last, and has died without a name", i)
		case p.clean && s.found != 0:
			return fmt.Errorf("user %d has closed at last, and the name is that of %d", i, s.found-1)
		}
	}
	return nil
}

func (c Blame) done(s *blameState) error {
	if !s.gone || s.own != 0 {
		return fmt.Errorf("the token stays, with the bits %b", s.own)
	}
	return nil
}
