package model

import "fmt"

// The notice model: four participants, each watching the next two in the table of seats,
// cyclically. Seat 3 may join, and the others may leave. Any participant may be killed, and another
// process may get its process ID at once. Any participant except the holder of the recovery lock
// may be stopped forever. A participant that waits for another may check whether it is alive.
// Reaping takes one step per seat, and a participant that reaps does not watch in the meantime.
//
// Invariants:
//   - At most one participant reaps.
//   - In a terminal state with a participant that is alive and not stopped, no dead participant may
//     be left in the table.

const members = 4

type entryState uint8 // state of a seat in the participant table

const (
	vacant entryState = iota
	joining
	live
	dead
)

type fate uint8 // state of the process

const (
	outside fate = iota
	running
	gone // killed
	away // the participant left, and its process lives on
)

type noticePC uint8

const (
	nIdle noticePC = iota
	nDeathEpoch
	nLock
	nSeen
	nReap
	nUnlock
	nAgain
	nLink
	nOpen
	nProof
	nJoinLock // of a mutation
	nJoining
	nJoinWake
	nJoinLive
	nJoinUnlock
	nLeaveDead
	nLeaveLock
	nLeaveUnlock
	nLeaveTell
	nLeaveFree
	nLeaveWake
)

type member struct {
	fate    fate
	pc      noticePC
	watch   [watched]uint8 // seat + 1, or 0 for none
	n       uint8          // participants found in a walk
	woken   bool
	stopped bool
	other   [watched]bool // it watches another process that got the dead one's process ID
	seen    uint8         // the death epoch at the start of the run
	known   uint8         // bit set of dead participants that it has already reported
	k       uint8
}

const watched = 2

type noticeState struct {
	table      [members]entryState
	lock       uint8 // seat + 1
	deathEpoch uint8
	p          [members]member
	kills      uint8
	stops      uint8
}

// A Notice configures the notice model: each participant watches two others to notice their
// deaths. Bug is a mutation that must be detected, or "".
type Notice struct {
	Blind bool // seat 3 is alive, and its watchers are stopped from the start
	One   bool // each watches only the next one, as if every second watcher were stopped
	Join  bool // seat 3 joins at some time
	Leave int  // number of seats among 0 to 2 that may leave
	Kills int
	Stops int  // participants that are stopped forever
	Doubt bool // waiting participants check the proof of life of all others
	Bug   string
}

// Mutations of the notice model.
const (
	NoDeathEpochCheck = "a reaper that lets go of the recovery lock does not look at the death epoch again"
	DeathEpochLate    = "only a participant that gets the lock raises the death epoch"
	NoWalk            = "a watcher looks only at the seats right after its own"
	JoinLocked        = "a joiner holds the recovery lock before anybody watches it"
	LeaveUntold       = "a participant that leaves frees its seat before it has told those that left deaths to it"
	LeaveHolding      = "a participant that leaves tells the others before it lets go of the recovery lock"
	WakeOne           = "a participant that joins or leaves wakes only the living seat before"
	WakeLate          = "a joiner becomes LIVE before it wakes the others"
	LeaveQuiet        = "a participant that has left wakes nobody"
	LeaveDeaths       = "a participant that leaves does not look for deaths that were left to it"
	NoSteal           = "the recovery lock is not taken from a dead holder"
	StealLiving       = "the recovery lock is taken from a living holder"
	StopAtDead        = "a watcher that finds a dead seat and does not get the lock watches nobody"
	JoiningHidden     = "a seat in JOINING is not watched"
	WatchOne          = "each watches only the next one"
	DoubtLess         = "a waiter does not ask for the proof that the others live"
	DoubtOnce         = "a doubting waiter leaves the dead to a holder of the recovery lock for good"
	NumberTrusted     = "a watcher does not ask for the proof of life after it has opened the pidfd"
)

func (c Notice) one() bool { return c.One || c.Bug == WatchOne }

// Model returns the transition system of c, for [Explore]. Initially, seats 0 to 2 or 3 are alive
// and watch each other.
func (c Notice) Model() Model[noticeState] {
	var s noticeState
	n := 3
	if c.Blind {
		n = 4
	}
	for i := range n {
		s.table[i] = live
		s.p[i] = member{fate: running, watch: [watched]uint8{uint8((i+1)%n) + 1, uint8((i+2)%n) + 1}}
		s.p[i].stopped = c.Blind && (i == 1 || i == 2)
		if c.one() {
			s.p[i].watch[1] = 0
		}
	}
	return Model[noticeState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Notice) steps(s noticeState, emit func(noticeState)) {
	for i := range members {
		if n := s; s.runs(i) && c.step(&n, i) {
			emit(n)
		}
	}
}

func (s *noticeState) runs(i int) bool { return s.p[i].fate == running && !s.p[i].stopped }

// events emits the states after a join of seat 3, a leave, a kill and a stop.
func (c Notice) events(s noticeState, emit func(noticeState)) {
	if n := s; c.Join && s.p[3].fate == outside {
		n.p[3].fate, n.p[3].pc = running, nJoining
		if c.Bug == JoinLocked {
			n.p[3].pc = nJoinLock
		}
		emit(n)
	}
	for i := range c.Leave {
		if n := s; s.runs(i) && s.p[i].pc == nIdle {
			n.p[i].pc = nLeaveDead
			emit(n)
		}
	}
	for i := range members {
		if n := s; s.p[i].fate == running && int(s.kills) < c.Kills {
			n.p[i] = member{fate: gone}
			n.kills++
			emit(n)
		}
		if n := s; s.runs(i) && int(s.stops) < c.Stops && s.lock != uint8(i+1) {
			n.p[i].stopped = true
			n.stops++
			emit(n)
		}
	}
}

// fired reports whether a participant that i watches has ended, so that i is notified.
func (s *noticeState) fired(i int) bool {
	for n, w := range s.p[i].watch {
		if w != 0 && s.p[w-1].fate == gone && !s.p[i].other[n] {
			return true
		}
	}
	return false
}

// doubts reports whether participant i, which waits for another, must act on a missing proof of
// life. It records in s that i knows the dead participant. For one that i knows already, it
// returns true only while the recovery lock is free.
func (c Notice) doubts(s *noticeState, i int) bool {
	if !c.Doubt || c.Bug == DoubtLess {
		return false
	}
	free := s.lock == 0 || s.p[s.lock-1].fate == gone
	for k := range members {
		if s.p[k].fate == gone && s.table[k] != vacant &&
			(s.p[i].known>>k&1 == 0 || free && c.Bug != DoubtOnce) {
			s.p[i].known |= 1 << k
			return true
		}
	}
	return false
}

func (c Notice) takeLock(s *noticeState, i int) bool {
	if s.lock != 0 && (s.p[s.lock-1].fate != gone || c.Bug == NoSteal) && c.Bug != StealLiving {
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
		case p.woken:
			p.woken = false
			p.link()
		case c.doubts(s, i):
			p.pc = nDeathEpoch
		default:
			return false
		}
	case nDeathEpoch:
		s.deathEpoch++
		p.pc = nLock
	case nLock:
		switch {
		case c.takeLock(s, i):
			p.pc = nSeen
		case c.Bug == StopAtDead:
			p.watch = [watched]uint8{}
			p.unwatch()
		default: // the lock holder will see the death epoch
			p.pc = nLink
			p.walk()
		}
	case nSeen:
		if c.Bug == DeathEpochLate {
			s.deathEpoch++
		}
		p.seen = s.deathEpoch
		p.k, p.pc = 0, nReap
	case nReap:
		c.reap(s, i)
	case nUnlock:
		s.unlock(i)
		p.pc = nAgain
	case nAgain:
		if s.deathEpoch != p.seen && c.Bug != NoDeathEpochCheck {
			p.pc = nLock
			break
		}
		p.link()
	case nLink:
		c.findWatched(s, i)
	case nOpen: // opens the pidfd by process ID
		p.other[p.n] = s.p[p.watch[p.n]-1].fate == gone
		if p.pc = nProof; c.Bug == NumberTrusted {
			c.linked(p)
		}
	case nProof:
		if p.pc = nDeathEpoch; s.p[p.watch[p.n]-1].fate != gone {
			c.linked(p)
		}
	default:
		return c.door(s, i)
	}
	return true
}

func (p *member) link() {
	p.k, p.n, p.seen, p.watch, p.other, p.pc = 1, 0, 0, [watched]uint8{}, [watched]bool{}, nLink
}

// linked moves p to the second participant to watch, or ends its walk.
func (c Notice) linked(p *member) {
	if p.n++; int(p.n) == watched || c.one() {
		p.k, p.n, p.pc = 0, 0, nIdle
		return
	}
	p.pc = nLink
	p.walk()
}

// unwatch ends a walk of p that has found no other participant to watch.
func (p *member) unwatch() { p.k, p.n, p.pc = 0, 0, nIdle }

func (s *noticeState) unlock(i int) {
	if s.lock == uint8(i+1) {
		s.lock = 0
	}
}

// reap performs a step in s of participant i, which has the recovery lock: it handles one seat
// in the scan for dead participants: DEAD first, FREE in the next step.
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
		p.k, p.pc = 0, nUnlock
	}
}

// findWatched performs a step in s of participant i: it reads one seat of the table to find the
// next living participant to watch. It announces a dead one, and reaps it if no other participant
// is reaping. Otherwise the walk continues after that seat, so that it does not spin on a seat that
// is about to become free.
func (c Notice) findWatched(s *noticeState, i int) {
	p := &s.p[i]
	k := (i + int(p.k)) % members
	if c.Bug == NoWalk && p.k > watched {
		p.unwatch()
		return
	}
	switch t := s.table[k]; {
	case k == i, t == vacant, t == joining && c.Bug == JoiningHidden:
		p.walk()
	case s.p[k].fate != gone:
		p.watch[p.n], p.pc = uint8(k+1), nOpen
	case c.Bug == DeathEpochLate:
		p.pc = nLock
	default:
		p.pc = nDeathEpoch
	}
}

// walk moves p to the next seat, or ends its walk after the last one.
func (p *member) walk() {
	if p.k++; p.k >= members {
		p.unwatch()
	}
}

// wakeAll wakes all participants except i.
func (s *noticeState) wakeAll(i int) {
	for k := range s.p {
		if k != i {
			s.wake(k)
		}
	}
}

func (s *noticeState) wake(k int) {
	s.p[k].woken = s.p[k].woken || s.table[k] != vacant && s.p[k].fate == running
}

// wakeBefore performs a step of participant i: it looks at one seat before its own, and wakes
// the participant there if it is one of the two living ones that watch i. done is true after the
// last of them.
func (c Notice) wakeBefore(s *noticeState, i int) (done bool) {
	p := &s.p[i]
	if p.k++; p.k == members {
		p.k, p.n = 0, 0
		return true
	}
	k := (i + members - int(p.k)) % members
	if s.table[k] != vacant && s.p[k].fate != gone {
		s.wake(k)
		p.n++
	}
	if p.n == watched || p.n == 1 && c.Bug == WakeOne {
		p.k, p.n = 0, 0
		return true
	}
	return false
}

// wakeForDeaths performs a step of participant i: it looks at one seat, and wakes all others if
// the participant there is dead. done is true after that, or after the last seat.
func (c Notice) wakeForDeaths(s *noticeState, i int) (done bool) {
	p := &s.p[i]
	dead := s.table[p.k] != vacant && s.p[p.k].fate == gone
	if dead && c.Bug != LeaveDeaths {
		s.wakeAll(i)
	}
	if p.k++; p.k == members || dead {
		p.k = 0
		return true
	}
	return false
}

// door performs the next step in s of participant i, which joins or leaves. It returns false if
// the participant must wait for the recovery lock.
func (c Notice) door(s *noticeState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case nJoinLock, nLeaveLock:
		if !c.takeLock(s, i) {
			return false
		}
		switch p.pc++; {
		case p.pc == nLeaveUnlock && c.Bug == LeaveUntold:
			s.table[i] = vacant
		case p.pc == nLeaveUnlock && c.Bug == LeaveHolding:
			p.pc = nLeaveTell
		}
	case nJoining:
		s.table[i] = joining
		if p.pc = nJoinWake; c.Bug == WakeLate {
			p.pc = nJoinLive
		}
	case nJoinWake:
		if !c.wakeBefore(s, i) {
			break
		}
		p.pc = nJoinLive
		if s.table[i] == live {
			p.pc = nJoinUnlock
		}
	case nJoinLive:
		s.table[i] = live
		if p.pc = nJoinUnlock; c.Bug == WakeLate {
			p.pc = nJoinWake
		}
	case nJoinUnlock:
		s.unlock(i)
		p.link()
	case nLeaveDead:
		s.table[i] = dead
		p.pc = nLeaveLock
	case nLeaveUnlock:
		s.unlock(i)
		switch p.pc = nLeaveTell; c.Bug {
		case LeaveUntold:
			p.pc = nLeaveWake
		case LeaveHolding:
			p.pc = nLeaveFree
		}
	case nLeaveTell:
		if !c.wakeForDeaths(s, i) {
			break
		}
		if p.pc = nLeaveFree; c.Bug == LeaveHolding {
			p.pc = nLeaveUnlock
		}
	case nLeaveFree:
		s.table[i] = vacant
		if p.pc = nLeaveWake; c.Bug == LeaveQuiet {
			*p = member{fate: away}
		}
	case nLeaveWake:
		if c.wakeBefore(s, i) {
			*p = member{fate: away}
		}
	}
	return true
}

// check requires that at most one living participant holds the recovery lock or acts as its holder.
func (c Notice) check(s *noticeState) error {
	for i := range s.p {
		if pc := s.p[i].pc; (pc == nReap || pc == nUnlock || pc == nLeaveUnlock) && s.lock != uint8(i+1) &&
			s.table[i] != vacant {
			return fmt.Errorf("seat %d reaps, and seat %d has the lock", i, int(s.lock)-1)
		}
	}
	return nil
}

func (c Notice) done(s *noticeState) error {
	witness := false
	for i := range members {
		if p := &s.p[i]; s.runs(i) {
			if p.pc != nIdle {
				return fmt.Errorf("stuck: seat %d", i)
			}
			witness = true
		}
	}
	for i := range members {
		if witness && s.p[i].fate == gone && (s.table[i] == live || s.table[i] == dead) {
			return fmt.Errorf("seat %d is dead and nobody reaps it", i)
		}
	}
	return nil
}
