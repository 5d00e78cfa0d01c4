package model

import "fmt"

// The notice model: four participants, each watching the next one in the ring of slots. Slot 3 may join, the others may leave, anybody may be
// killed. Reaping itself is one step a slot here. What must hold: when nothing moves any more and somebody lives, nobody dead is left in the table.

const members = 4

type entryState uint8 // of a slot in the participant table

const (
	vacant entryState = iota
	joining
	live
	dead
)

type fate uint8 // of the process

const (
	outside fate = iota
	running
	gone // killed
	away // left, its process lives on
)

type noticePC uint8

const (
	nIdle noticePC = iota
	nObituary
	nLock
	nSeen
	nReap
	nUnlock
	nAgain
	nLink
	nJoinLock // of a mutation
	nJoining
	nJoinRing
	nJoinLive
	nJoinUnlock
	nLeaveLock
	nLeaveDead
	nLeaveUnlock
	nLeaveAgain
	nLeaveFree
	nLeaveRing
	nLeaveLateUnlock // of a mutation
)

type member struct {
	fate  fate
	pc    noticePC
	watch uint8 // slot + 1, 0 nobody
	rung  bool
	seen  uint8 // the obituary when the run began
	k     uint8
	after noticePC // what the reap scan or the link goes on with
}

type noticeState struct {
	table    [members]entryState
	lock     uint8 // slot + 1
	obituary uint8
	p        [members]member
	kills    uint8
}

// Notice is a configuration of the notice model.
type Notice struct {
	Join  bool // slot 3 joins at some time
	Leave bool // slots 0 to 2 may leave
	Kills int
	Bug   string
}

// The mutations of the notice model.
const (
	NoObituaryCheck = "who lets go of the recovery lock does not look at the obituary again"
	ObituaryLate    = "the obituary is raised only by who gets the lock"
	NoWalk          = "a watcher looks only at the slot after the one that died"
	JoinLocked      = "a joiner holds the recovery lock before anybody watches it"
	LeaveLocked     = "who leaves frees its slot under the recovery lock"
	ReapSelfOnly    = "who leaves reaps itself under the recovery lock, and not all the dead"
	RingOnce        = "a ring that a dead predecessor does not take is lost"
	RingLate        = "a joiner becomes LIVE before it rings its predecessor"
	LeaveQuiet      = "who leaves does not ring its predecessor"
	NoSteal         = "the recovery lock is not taken from a dead holder"
	StopAtDead      = "who finds a dead slot and does not get the lock watches nobody"
	JoiningHidden   = "a slot in JOINING is not watched"
)

// Model returns the transition system of c: slots 0 to 2 live and watch each other.
func (c Notice) Model() Model[noticeState] {
	var s noticeState
	for i := range 3 {
		s.table[i] = live
		s.p[i] = member{fate: running, watch: uint8((i+1)%3) + 1}
	}
	return Model[noticeState]{Init: s, Steps: c.steps, Events: c.events, Check: func(*noticeState) error { return nil }, Done: c.done}
}

func (c Notice) steps(s noticeState, emit func(noticeState)) {
	for i := range members {
		if n := s; s.p[i].fate == running && c.step(&n, i) {
			emit(n)
		}
	}
}

// events: slot 3 joins, another one leaves, somebody is killed.
func (c Notice) events(s noticeState, emit func(noticeState)) {
	if n := s; c.Join && s.p[3].fate == outside {
		n.p[3].fate, n.p[3].pc = running, nJoining
		if c.Bug == JoinLocked {
			n.p[3].pc = nJoinLock
		}
		emit(n)
	}
	for i := range 3 {
		if n := s; c.Leave && s.p[i].fate == running && s.p[i].pc == nIdle {
			n.p[i].pc = nLeaveLock
			emit(n)
		}
	}
	for i := range members {
		if n := s; s.p[i].fate == running && int(s.kills) < c.Kills {
			n.p[i] = member{fate: gone}
			n.kills++
			emit(n)
		}
	}
}

// fired reports whether what participant i watches has ended.
func (s *noticeState) fired(i int) bool {
	w := s.p[i].watch
	return w != 0 && s.p[w-1].fate == gone
}

func (c Notice) take(s *noticeState, i int) bool {
	if s.lock != 0 && (s.p[s.lock-1].fate != gone || c.Bug == NoSteal) {
		return false
	}
	s.lock = uint8(i + 1)
	return true
}

func (c Notice) step(s *noticeState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case nIdle:
		switch {
		case s.fired(i):
			p.link()
		case p.rung:
			p.rung = false
			p.link()
		default:
			return false
		}
	case nObituary:
		s.obituary++
		p.pc = nLock
	case nLock:
		switch {
		case c.take(s, i):
			p.pc = nSeen
		case c.Bug == StopAtDead:
			p.watch, p.pc = 0, nIdle
		default: // whoever has it will see the obituary
			p.pc = nLink
			p.walk()
		}
	case nSeen:
		if c.Bug == ObituaryLate {
			s.obituary++
		}
		p.seen = s.obituary
		p.scan(nUnlock)
	case nReap:
		c.reap(s, i)
	case nUnlock:
		s.lock = 0
		p.pc = nAgain
	case nAgain:
		if s.obituary != p.seen && c.Bug != NoObituaryCheck {
			p.pc = nLock
			break
		}
		p.link()
	case nLink:
		c.look(s, i)
	default:
		return c.door(s, i)
	}
	return true
}

func (p *member) link() { p.k, p.pc = 1, nLink }

func (p *member) scan(then noticePC) { p.k, p.after, p.pc = 0, then, nReap }

// reap does one slot of the scan for the dead: DEAD first, FREE in the next step.
func (c Notice) reap(s *noticeState, i int) {
	p := &s.p[i]
	t := &s.table[p.k]
	if *t != vacant && *t != dead && s.p[p.k].fate == gone {
		*t = dead
		return
	}
	if *t == dead && s.p[p.k].fate == gone {
		*t = vacant
	}
	if p.k++; p.k == members {
		p.k, p.pc = 0, p.after
	}
}

// look reads one slot of the table for whom to watch: the next one that lives. A dead one is announced, and reaped if nobody else is reaping; if somebody is,
// the walk goes on behind it, so that nobody spins on a slot that another one is about to free.
func (c Notice) look(s *noticeState, i int) {
	p := &s.p[i]
	k := (i + int(p.k)) % members
	if c.Bug == NoWalk && p.watch != 0 {
		k = int(p.watch) % members
		p.k = members - 1
	}
	switch t := s.table[k]; {
	case k == i, t == vacant, t == joining && c.Bug == JoiningHidden:
		p.walk()
	case s.p[k].fate != gone:
		p.watch, p.k, p.pc = uint8(k+1), 0, nIdle
	case c.Bug == ObituaryLate:
		p.pc = nLock
	default:
		p.pc = nObituary
	}
}

// walk goes on to the slot after.
func (p *member) walk() {
	if p.k++; p.k >= members {
		p.watch, p.k, p.pc = 0, 0, nIdle
	}
}

// ring rings the doorbell of the slot before i that is LIVE and answers, if there is one.
func (c Notice) ring(s *noticeState, i int) {
	for d := 1; d < members; d++ {
		k := (i + members - d) % members
		if s.table[k] != live {
			continue
		}
		if s.p[k].fate == running {
			s.p[k].rung = true
			return
		}
		if c.Bug == RingOnce {
			return
		}
	}
}

// door does a step of joining or of leaving.
func (c Notice) door(s *noticeState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case nJoinLock, nLeaveLock:
		if !c.take(s, i) {
			return false
		}
		p.seen = s.obituary
		p.pc++
	case nJoining:
		s.table[i] = joining
		if p.pc = nJoinRing; c.Bug == RingLate {
			p.pc = nJoinLive
		}
	case nJoinRing:
		c.ring(s, i)
		p.pc = nJoinLive
		if s.table[i] == live {
			p.pc = nJoinUnlock
		}
	case nJoinLive:
		s.table[i] = live
		if p.pc = nJoinUnlock; c.Bug == RingLate {
			p.pc = nJoinRing
		}
	case nJoinUnlock:
		if c.Bug == JoinLocked {
			s.lock = 0
		}
		p.link()
	case nLeaveDead:
		s.table[i] = dead
		switch {
		case c.Bug == LeaveLocked:
			p.scan(nLeaveFree)
		case c.Bug == ReapSelfOnly:
			p.pc = nLeaveUnlock
		default:
			p.scan(nLeaveUnlock)
		}
	case nLeaveUnlock:
		s.lock = 0
		p.pc = nLeaveAgain
	case nLeaveAgain:
		if s.obituary == p.seen {
			p.pc = nLeaveFree
			break
		}
		if !c.take(s, i) {
			p.pc = nLeaveFree // the holder will see the obituary
			break
		}
		p.seen = s.obituary
		p.scan(nLeaveUnlock)
	case nLeaveFree:
		s.table[i] = vacant
		switch {
		case c.Bug == LeaveLocked:
			p.pc = nLeaveLateUnlock
		case c.Bug == LeaveQuiet:
			*p = member{fate: away}
		default:
			p.pc = nLeaveRing
		}
	case nLeaveRing:
		c.ring(s, i)
		*p = member{fate: away}
	case nLeaveLateUnlock:
		s.lock = 0
		p.pc = nLeaveRing
	}
	return true
}

func (c Notice) done(s *noticeState) error {
	witness := false
	for i := range members {
		if p := &s.p[i]; p.fate == running {
			if p.pc != nIdle {
				return fmt.Errorf("stuck: slot %d", i)
			}
			witness = true
		}
	}
	for i := range members {
		if witness && s.p[i].fate == gone && (s.table[i] == live || s.table[i] == dead) {
			return fmt.Errorf("slot %d is dead and nobody reaps it", i)
		}
	}
	return nil
}
