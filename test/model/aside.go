package model

import "fmt"

// The aside model: the finaliser of an end runs in a lane of its own. Two users hold an end. A
// third is in the middle of an operation on a message that the finaliser removes from the ring. A
// user that releases the end clears its owner bit first. A goroutine in another lane of its process
// then tries to free the end, and the user waits for it only for a moment. Then the user may leave
// the domain while the goroutine still works. Two reapers do the same for dead participants: one
// may be killed, and then the other takes over. A participant that is dead, or that has left with
// unfinished work in a lane, must be reaped with all of its lanes.
//
// The ends model shows how a ring is drained and how its receivers are notified.

type asidePC uint8

const (
	asIdle    asidePC = iota
	asOperate         // a user is in the middle of its operation
	asHold
	asBegin // its bit is cleared, and the goroutine must start
	asWait
	asOut
	asStamps // reaper: operations of the dead lanes
	asBits
	asTry
	asReapWait
	asFree
	// steps of goroutines
	asPeek
	asOwners
	asGone
	asMessage
	asTell
	asLast
)

const (
	holders    = 2
	operator   = holders
	asideUsers = holders + 1
	asides     = asideUsers + 2 // including the reapers
	asideLanes = asides         // participant i has the lanes i + 1 and i + 1 + asideLanes
)

type asideThread struct {
	process
	pc   asidePC
	work asidePC // step of its goroutine
}

type asideState struct {
	alloc   bool
	gone    bool  // GONE beside a FREE stamp
	own     uint8 // owner bits of users
	xo      uint8 // lane that stamped the end FREE
	message uint8 // lane that stamped the message
	told    bool
	twice   bool // a free block was freed
	set     uint8
	took    bool // the reaper cleared a bit of a dead participant
	p       [asides]asideThread
	kills   toll
}

// An Aside configures the aside model: a goroutine in a lane of its own frees an end, and its
// caller waits for it only for a moment. Kills limits the kills. Bug is a mutation that must be
// detected, or "".
type Aside struct {
	Kills int
	Bug   string
}

// Mutations of the aside model.
const (
	TriesItsOwn = "a reaper tries to free only what it has taken a dead participant's bit from"
	LeavesFree  = "a participant that leaves frees its seat while a goroutine of it has a stamp"
	MainOnly    = "a reaper clears the stamps of the lane of a dead participant's callers only"
	TakesBack   = "a caller that does not wait any longer clears the stamp of its goroutine"
	WaitsOn     = "a reaper waits for its goroutine for as long as it takes"
)

// Model returns the transition system of c, for [Explore].
func (c Aside) Model() Model[asideState] {
	s := asideState{alloc: true, own: 1<<holders - 1, message: operator + 1}
	for i := range holders {
		s.p[i].pc = asHold
	}
	s.p[operator].pc = asOperate
	return Model[asideState]{Init: s, Steps: c.steps, Events: c.kill, Check: c.check, Done: c.done}
}

func (c Aside) steps(s asideState, emit func(asideState)) {
	for i := range s.p {
		if !s.p[i].lives() {
			continue
		}
		step := c.reap
		if i < asideUsers {
			step = c.use
		}
		if n := s; step(&n, i) {
			emit(n)
		}
		if n := s; c.finalise(&n, i) {
			emit(n)
		}
		if n := s; c.giveUp(&n, i) {
			emit(n)
		}
	}
}

func (c Aside) kill(s asideState, emit func(asideState)) {
	for i := range asides - 1 {
		if n := s; n.p[i].pc != asOut && n.kills.kill(&n.p[i].process, c.Kills) {
			n.lose(i)
			emit(n)
		}
	}
}

// lose discards the local state of participant i when it is killed.
func (s *asideState) lose(i int) {
	s.p[i].pc, s.p[i].work = asIdle, asIdle
	if i >= asideUsers {
		s.set, s.took = 0, false
	}
}

// use performs the next step of user i in s. It returns false if the user must wait or has no
// step left.
func (c Aside) use(s *asideState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case asOperate:
		s.message = 0
		p.pc, p.life = asOut, reaped
	case asHold:
		s.own &^= 1 << i
		p.pc = asBegin
	case asBegin:
		p.work = asPeek
		p.pc = asWait
	case asWait:
		if p.work != asIdle {
			return false
		}
		p.pc = asOut
		p.life = reaped
	default:
		return false
	}
	return true
}

// giveUp ends the wait of participant i for its goroutine, as a step in s. A user then leaves,
// and a reaper must complete its goroutine's work. A reaper continues. giveUp returns false if
// the participant does not wait.
func (c Aside) giveUp(s *asideState, i int) bool {
	p := &s.p[i]
	if p.pc != asWait && p.pc != asReapWait || p.work == asIdle || c.Bug == WaitsOn && i >= asideUsers {
		return false
	}
	if lane := uint8(i + 1 + asideLanes); c.Bug == TakesBack && s.xo == lane {
		s.xo, s.gone = 0, false
	}
	switch {
	case i >= asideUsers:
		p.pc = asFree
	case c.Bug == LeavesFree:
		p.pc, p.work, p.life = asOut, asIdle, reaped
	case c.Bug == TakesBack: // the goroutine continues
		p.pc = asOut
	default:
		p.pc, p.work, p.life = asOut, asIdle, killed
	}
	return true
}

// finalise performs the next step, in s, of the goroutine of participant i that tries to free
// the end. It returns false if the goroutine must wait or has no step left.
func (c Aside) finalise(s *asideState, i int) bool {
	p := &s.p[i]
	switch p.work {
	case asPeek:
		if !s.alloc || s.xo != 0 || s.own != 0 {
			p.work = asIdle
			break
		}
		s.xo = uint8(i + 1 + asideLanes)
		p.work = asOwners
	case asOwners:
		if p.work = asGone; s.own != 0 {
			s.xo = 0
			p.work = asPeek
		}
	case asGone:
		s.gone = true
		p.work = asMessage
	case asMessage: // waits for the stamp of a living participant
		if s.message != 0 {
			return false
		}
		p.work = asTell
	case asTell:
		s.told = true
		p.work = asLast
	case asLast:
		s.twice = s.twice || !s.alloc
		s.alloc, s.gone, s.xo = false, false, 0
		p.work = asIdle
	default:
		return false
	}
	return true
}

// reap performs the next step of reaper i in s. It returns false if there is nothing to reap or
// the reaper must wait. The second reaper runs only if the first one was killed.
func (c Aside) reap(s *asideState, i int) bool {
	p := &s.p[i]
	dead := withLife(s.p[:], killed)
	switch p.pc {
	case asIdle:
		if dead == 0 || i == asides-1 && s.p[i-1].lives() {
			return false
		}
		s.set, s.took = dead, false
		p.pc = asStamps
	case asStamps:
		if s.has(s.message) {
			s.message = 0
		}
		if s.has(s.xo) && (c.Bug != MainOnly || s.xo <= asideLanes) {
			s.xo, s.gone = 0, false
		}
		p.pc = asBits
	case asBits:
		s.took = s.own&s.set != 0
		s.own &^= s.set
		p.pc = asTry
	case asTry:
		p.pc = asFree
		if s.alloc && s.xo == 0 && s.own == 0 && (s.took || c.Bug != TriesItsOwn) && p.work == asIdle {
			p.work = asPeek
			p.pc = asReapWait
		}
	case asReapWait:
		if p.work != asIdle {
			return false
		}
		p.pc = asFree
	case asFree:
		for j := range s.p {
			if s.set>>j&1 == 1 {
				s.p[j].life = reaped
			}
		}
		s.set = 0
		p.pc = asIdle
	default:
		return false
	}
	return true
}

// has reports whether a lane, 0 for none, belongs to a participant that this run reaps.
func (s *asideState) has(lane uint8) bool {
	return lane != 0 && s.set>>((lane-1)%asideLanes)&1 == 1
}

func (c Aside) check(s *asideState) error {
	switch {
	case s.twice:
		return fmt.Errorf("the end was freed twice")
	case !s.alloc && s.own != 0:
		return fmt.Errorf("use after free: %b hold the end", s.own)
	case !s.alloc && !s.told:
		return fmt.Errorf("the end is gone, and nobody was told")
	}
	return nil
}

func (c Aside) done(s *asideState) error {
	for i := range s.p {
		if s.p[i].is(killed) {
			return fmt.Errorf("participant %d is not reaped", i)
		}
	}
	if s.alloc || s.xo != 0 || s.message != 0 {
		return fmt.Errorf("leak: the end has the bits %b and the stamp %d, the message %d", s.own, s.xo, s.message)
	}
	return nil
}
