package model

import "fmt"

// The barrier model: participants, all of them members, meet in turns. Waits may be canceled, a
// participant may reset the barrier, and a seat may be reused. A member that is gone breaks the
// barrier.
//
// Invariants:
//   - A turn must succeed for all participants that arrived in it or fail for all of them. It must
//     succeed for as many as there are parties, and only after its action.
//   - A party that arrives after a death must not pass before a reset.
//   - No party may wait for a member that is gone.
//
// Waits are steps that are not enabled. The wake model covers wake-ups.

type barPC uint8

const (
	brJoin barPC = iota
	brShare
	brIdle
	brLoad
	brJudge
	brSettle // all parties have arrived, and the turn has not ended
	brArrive
	brAwait
	brWoken
	brBreak
	brEnded
	brAct
	brEndLoad
	brEndJudge
	brEnd
	brForget
	brTurn
	brBreakIfDead
	brAbort
	brAbortSet
	brFail
	brDone
)

const (
	barUsers = 3
	barTurns = 8
)

type barWord struct {
	turn    uint8
	resets  uint8 // one bit per turn that was ended by a reset, latest first
	arrived uint8
	broken  bool
}

type barUser struct {
	participant
	pc     barPC
	then   barPC // next step after a check for deaths
	left   uint8
	seen   barWord
	turn   uint8 // the turn in which it arrived
	came   bool
	ended  bool  // its wait was canceled
	at     uint8 // seat with the share to clear
	abort  uint8 // the turn to break
	early  bool  // it breaks the barrier for a process that it started and that died at its start
	doomed bool  // ghost: a member was gone when it arrived
}

type barState struct {
	word    barWord
	shares  [barUsers]rwShareWord
	p       [barUsers]barUser
	kills   toll
	rejoins toll
	ends    uint8
	resets  uint8
	early   toll

	// Ghost variables.
	lost   bool // a process died at its start and was reported by its parent, without a reset since
	passes [barTurns]uint8
	failed uint8 // bit set of turns
	acted  uint8
	must   bool // a member is gone, without a reset since
}

// A Barrier configures the barrier model: participants meet in turns. The fields after Rounds
// limit the events of each kind. Bug is a mutation that must be detected, or "".
type Barrier struct {
	Parties int
	Rounds  int // of each participant
	Kills   int
	Rejoins int
	Ends    int // canceled waits
	Resets  int
	Early   int // processes that die at their start; their parent is a member for them
	Bug     string
}

// Mutations of the barrier model.
const (
	BarrierDeaf = "a waiter does not see that a member is gone"
	JoinForgets = "a participant that comes into the seat of a dead member does not break the barrier first"
	AbortOnce   = "a participant that breaks the barrier gives up when the turn ends meanwhile"
	NoHistory   = "a waiter that wakes late takes every turn that is over for one that ended well"
	EndBlind    = "the last one to come ends the turn without looking for deaths"
	FailQuiet   = "a waiter that fails because a member is gone leaves the turn to end well"
	Overrun     = "a participant that comes when all are there does not wait for the end of the turn"
	ResetInTurn = "a reset does not begin a new turn"
	ActLate     = "the action comes after the end of the turn"
	EarlyQuiet  = "a starter does not break the barrier for a process that died at its start"
)

// Model returns the transition system of c, for [Explore].
func (c Barrier) Model() Model[barState] {
	var s barState
	for i := range s.p {
		s.p[i] = barUser{pc: brIdle, left: uint8(c.Rounds)}
		s.shares[i].count = 1
	}
	return Model[barState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Barrier) steps(s barState, emit func(barState)) {
	for i := range s.p {
		n := s
		switch p := &n.p[i]; {
		case p.lives():
			if c.step(&n, i) {
				emit(n)
			}
		case p.reap():
			n.must = n.must || p.life == marked && n.shares[i] == rwShareWord{p.epoch, 1}
			emit(n)
		}
	}
}

// events emits the states after a death, a new participant, a canceled wait and a reset.
func (c Barrier) events(s barState, emit func(barState)) {
	for i := range s.p {
		n := s
		switch p := &n.p[i]; {
		case p.pc != brDone && n.kills.kill(&p.process, c.Kills):
			*p = barUser{participant: p.participant}
			emit(n)
		case n.rejoins.rejoin(&p.participant, c.Rejoins):
			*p = barUser{participant: p.participant, left: 1}
			emit(n)
		}
		if n := s; s.p[i].lives() && s.p[i].pc == brAwait && int(s.ends) < c.Ends {
			n.p[i].ended, n.p[i].pc = true, brWoken
			n.ends++
			emit(n)
		}
		if n := s; s.p[i].lives() && s.p[i].pc == brIdle && int(s.resets) < c.Resets {
			n.p[i].pc = brForget
			n.resets++
			emit(n)
		}
		if n := s; s.p[i].lives() && s.p[i].pc == brIdle && s.p[i].left > 0 && int(s.early) < c.Early {
			n.early++
			if n.p[i].pc, n.p[i].then, n.p[i].early = brAbort, brIdle, true; c.Bug == EarlyQuiet {
				n.p[i].pc, n.p[i].then, n.p[i].early, n.lost = brIdle, 0, false, true
			}
			emit(n)
		}
	}
}

func (s *barState) gone(i int) bool {
	h := s.shares[i]
	return h.count > 0 && s.p[i].gone(h.epoch)
}

func (s *barState) bereft() bool { return s.gone(0) || s.gone(1) || s.gone(2) }

func (c Barrier) step(s *barState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case brJoin:
		if p.pc, p.then = brBreakIfDead, brShare; c.Bug == JoinForgets {
			p.pc = brShare
		}
	case brShare:
		s.shares[i] = rwShareWord{p.epoch, 1}
		p.then, p.pc = 0, brIdle
	case brIdle:
		p.doomed = s.must || s.lost
		if p.pc = brLoad; p.left == 0 {
			s.shares[i].count = 0 // an orderly leave
			p.pc, p.doomed = brDone, false
		}
	case brAwait, brWoken, brBreak, brEnded:
		return c.awaitTurn(s, p)
	case brAct, brEndLoad, brEndJudge, brEnd:
		c.endTurn(s, p)
	case brForget, brTurn:
		c.reset(s, p)
	case brBreakIfDead, brAbort, brAbortSet, brFail:
		c.breakIfDead(s, p)
	default:
		return c.come(s, p)
	}
	return true
}

// come performs the next step in s of participant p before it has arrived. It returns false if p
// must wait for the end of the turn or has no step left.
func (c Barrier) come(s *barState, p *barUser) bool {
	switch p.pc {
	case brLoad:
		p.seen, p.pc = s.word, brJudge
	case brJudge:
		switch {
		case p.seen.broken || s.bereft():
			p.pc, p.then = brBreakIfDead, brFail
		case int(p.seen.arrived) >= c.Parties && c.Bug != Overrun:
			p.pc = brSettle
		default:
			p.pc = brArrive
		}
	case brSettle:
		if s.word.turn == p.seen.turn && !s.word.broken && !s.bereft() {
			return false
		}
		p.pc = brLoad
	case brArrive:
		if s.word != p.seen {
			p.pc = brLoad
			break
		}
		s.word.arrived++
		p.came, p.turn = true, s.word.turn
		if p.pc = brAwait; int(s.word.arrived) == c.Parties {
			if p.pc = brAct; c.Bug == ActLate {
				p.pc = brEndLoad
			}
		}
	default:
		return false
	}
	return true
}

// awaitTurn performs the next step in s of a participant that has arrived and is not the last one.
// It returns false if p must wait for the others.
func (c Barrier) awaitTurn(s *barState, p *barUser) bool {
	switch p.pc {
	case brAwait:
		if s.word.turn == p.turn && !s.word.broken && (c.Bug == BarrierDeaf || !s.bereft()) {
			return false
		}
		p.pc = brWoken
	case brWoken:
		switch {
		case s.word.turn != p.turn:
			p.pc = brEnded
		case c.Bug == FailQuiet && !p.ended:
			p.pc, p.then = brBreakIfDead, brFail
		default:
			p.pc = brBreak
		}
	case brBreak:
		if p.pc = brEnded; s.word.turn == p.turn {
			s.word.broken = true
			p.pc, p.then = brBreakIfDead, brFail
		}
	case brEnded:
		ago := s.word.turn - p.turn
		if s.word.resets>>(ago-1)&1 != 0 && c.Bug != NoHistory {
			p.pc = brFail
			break
		}
		c.pass(s, p)
	}
	return true
}

// endTurn performs the next step in s of the last participant to arrive: the action and the end of
// the turn.
func (c Barrier) endTurn(s *barState, p *barUser) {
	switch p.pc {
	case brAct:
		s.acted |= 1 << p.turn
		if p.pc = brEndLoad; c.Bug == ActLate {
			c.pass(s, p)
		}
	case brEndLoad:
		p.seen, p.pc = s.word, brEndJudge
	case brEndJudge:
		switch {
		case p.seen.turn != p.turn:
			p.pc, p.then = brBreakIfDead, brFail
		case c.Bug == EndBlind:
			p.pc = brEnd
		case p.seen.broken || s.bereft():
			if p.pc = brBreak; c.Bug == FailQuiet {
				p.pc, p.then = brBreakIfDead, brFail
			}
		default:
			p.pc = brEnd
		}
	case brEnd:
		if s.word != p.seen {
			p.pc = brEndLoad
			break
		}
		s.word = s.word.next(0)
		if p.pc = brAct; c.Bug != ActLate {
			c.pass(s, p)
		}
	}
}

func (w barWord) next(reset uint8) barWord {
	return barWord{turn: w.turn + 1, resets: w.resets<<1 | reset}
}

func (c Barrier) pass(s *barState, p *barUser) {
	s.passes[p.turn]++
	p.left--
	p.came, p.pc = false, brIdle // doomed is kept for the check
	p.ended, p.seen = false, barWord{}
}

// reset performs the next step in s of a reset by p: it clears one member if it is gone, or
// starts a new turn after the last member.
func (c Barrier) reset(s *barState, p *barUser) {
	if p.pc == brForget {
		if s.gone(int(p.at)) {
			s.shares[p.at].count = 0
		}
		if p.at++; p.at == barUsers {
			p.at, p.pc = 0, brTurn
		}
		s.must = s.must && s.bereft()
	} else {
		p.pc = brIdle
		if s.word = s.word.next(1); c.Bug == ResetInTurn {
			s.word.turn--
			s.word.resets >>= 1
		}
		s.must, s.lost = false, false
	}
	if !s.must && !s.lost {
		for i := range s.p {
			s.p[i].doomed = false
		}
	}
}

// breakIfDead performs the next step in s of p, which must be at brBreakIfDead, brAbort,
// brAbortSet or brFail. In the first three, p breaks the barrier if a member is gone, and in any
// case continues with p.then. In brFail, the operation of p fails and p becomes idle.
func (c Barrier) breakIfDead(s *barState, p *barUser) {
	switch p.pc {
	case brBreakIfDead:
		if p.pc = p.then; s.bereft() {
			p.pc = brAbort
		}
	case brAbort:
		p.abort, p.pc = s.word.turn, brAbortSet
	case brAbortSet:
		switch {
		case s.word.turn == p.abort:
			s.word.broken = true
			p.pc = p.then
		case c.Bug == AbortOnce:
			p.pc = p.then
		default:
			p.pc = brAbort
		}
		if p.pc != brAbort {
			p.abort = 0
			if p.early {
				s.lost, p.early, p.then = true, false, 0
			}
		}
	case brFail:
		if p.came {
			s.failed |= 1 << p.turn
		}
		*p = barUser{participant: p.participant, pc: brIdle, left: p.left - 1}
	}
}

func (c Barrier) check(s *barState) error {
	for turn, n := range s.passes {
		switch {
		case n > 0 && s.failed>>turn&1 != 0:
			return fmt.Errorf("turn %d has ended well for some, and badly for others", turn)
		case n > 0 && s.acted>>turn&1 == 0:
			return fmt.Errorf("turn %d ended before its action", turn)
		case int(n) > c.Parties:
			return fmt.Errorf("%d have passed in turn %d", n, turn)
		}
	}
	for i := range s.p {
		if p := &s.p[i]; p.lives() && p.pc == brIdle && p.doomed {
			return fmt.Errorf("participant %d passes, though a member was gone when it came", i)
		}
	}
	return nil
}

func (c Barrier) done(s *barState) error {
	for i := range s.p {
		p := &s.p[i]
		switch {
		case !p.lives() || p.pc == brDone:
		case p.pc != brAwait && p.pc != brSettle:
			return fmt.Errorf("participant %d is stuck", i)
		case s.bereft() || s.word.broken || s.word.turn != p.turn && p.pc == brAwait || p.pc == brSettle:
			return fmt.Errorf("participant %d waits for ever", i)
		}
	}
	return nil
}
