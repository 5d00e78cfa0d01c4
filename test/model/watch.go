package model

import "fmt"

// The watch model: one or two processes watch a barrier at which they do not meet, to learn which
// participants leave or die. Two others leave. Each of them records that in memory that the barrier
// does not know, increments a count, and aborts the barrier, which the other one may have broken
// before. They may be killed at any step. A reaper, which may be killed as well, marks the dead,
// wakes all participants and frees the seats of the dead.
//
// Invariant: in a terminal state, every watcher must know each participant that is gone.

const (
	watchers = 2
	leavers  = 2
)

type watchPC uint8

const (
	waCensus watchPC = iota // takes the census for a later comparison
	waLook
	waFirst // checks before it parks
	waSetBit
	waAgain
	waParked
	waWoken
	waWokenBit
	waWokenAgain
)

type leavePC uint8

const (
	lvSay leavePC = iota
	lvCount
	lvBreak
	lvTake // takes the bits of the watchers
	lvWake
	lvGone
)

type watcher struct {
	pc    watchPC
	seen  watchCensus
	knows uint8 // bit set of participants that are gone
	bell  bool
}

type watchCensus struct{ lost, left uint8 }

type leaver struct {
	process
	pc    leavePC
	woken uint8 // bit set of watchers that it still must wake
}

type watchState struct {
	w      [watchers]watcher
	l      [leavers]leaver
	bits   uint8 // participants that request a wake-up
	said   uint8 // bit set of participants that have left
	left   uint8 // their number
	broken bool

	reaping uint8 // bit set of watchers that the reaper still must wake; set with dead
	freeing bool  // it has woken them and frees the seats
	dead    bool  // a participant is marked, and its seat is not free
	kills   toll
	reaps   uint8 // kills of the reaper
}

// A Watch configures the watch model: processes watch a barrier to learn which participants
// leave or die. Bug is a mutation that must be detected, or "".
type Watch struct {
	Watchers int // 1 or 2
	Kills    int
	Reaps    int // kills of the reaper
	Bug      string
}

// Mutations of the watch model.
const (
	AbortQuiet     = "a participant that aborts a barrier that is broken already wakes nobody"
	LeaveLate      = "a participant that leaves aborts the barrier before it has said so"
	WatchBlind     = "a watcher does not look again after it set its bit"
	WatchOnce      = "a watcher that is woken for nothing does not set its bit again"
	CensusLate     = "a watcher takes the census after it has looked for the gone"
	WakeFirstOnly  = "the taker of the bits wakes one participant"
	ReapQuiet      = "the reaper wakes nobody"
	ReapWakesFirst = "the reaper wakes before it marks the dead"
	ReapFreesFirst = "the reaper frees the seats of the dead before it wakes them, and is killed in between"
)

// Model returns the transition system of c, for [Explore].
func (c Watch) Model() Model[watchState] {
	return Model[watchState]{Steps: c.steps, Events: c.events, Check: func(*watchState) error { return nil },
		Done: c.done}
}

func (c Watch) steps(s watchState, emit func(watchState)) {
	for i := range c.Watchers {
		if n := s; c.watch(&n, i) {
			emit(n)
		}
	}
	for i := range s.l {
		if n := s; s.l[i].lives() && c.leave(&n, &n.l[i], uint8(1)<<i) {
			emit(n)
		}
	}
	c.reap(s, emit)
}

// events emits the states after the death of a participant, or of the reaper; another reaper
// continues its work.
func (c Watch) events(s watchState, emit func(watchState)) {
	for i := range s.l {
		if n := s; s.l[i].pc != lvGone && n.kills.kill(&n.l[i].process, c.Kills) {
			n.l[i] = leaver{process: n.l[i].process}
			emit(n)
		}
	}
	if n := s; (s.dead || s.reaping != 0) && int(s.reaps) < c.Reaps {
		n.reaps++
		if n.reaping, n.freeing = 0, false; s.dead {
			n.reaping = c.all() // the reaper that finds a mark wakes
		}
		emit(n)
	}
}

func (s *watchState) census() watchCensus {
	n := watchCensus{left: s.left}
	for i := range s.l {
		if s.l[i].dead() {
			n.lost++
		}
	}
	return n
}

// findGone returns the participants that have left or are known to be dead, as a bit set.
func (s *watchState) findGone() (gone uint8) {
	gone = s.said
	for i := range s.l {
		if s.l[i].dead() {
			gone |= 1 << i
		}
	}
	return gone
}

// watch performs the next step in s of watcher i. It returns false while the watcher is parked.
// The watcher is ready if the census differs from the one that it has seen.
func (c Watch) watch(s *watchState, i int) bool {
	w := &s.w[i]
	ready := s.census() != w.seen
	park := func(on watchPC) {
		if w.pc = on; ready {
			w.pc = waCensus
		}
	}
	switch w.pc {
	case waCensus:
		if w.pc = waLook; c.Bug == CensusLate {
			w.knows = s.findGone()
			break
		}
		w.seen = s.census()
	case waLook:
		if w.pc = waFirst; c.Bug == CensusLate {
			w.seen = s.census()
			break
		}
		w.knows = s.findGone()
	case waFirst:
		park(waSetBit)
	case waSetBit:
		s.bits |= 1 << i
		if w.pc = waAgain; c.Bug == WatchBlind {
			w.pc = waParked
		}
	case waAgain:
		park(waParked)
	case waParked:
		if !w.bell {
			return false
		}
		w.bell, w.pc = false, waWoken
	case waWoken:
		if park(waWokenBit); c.Bug == WatchOnce && !ready {
			w.pc = waParked
		}
	case waWokenBit:
		s.bits |= 1 << i
		w.pc = waWokenAgain
	case waWokenAgain:
		park(waParked)
	}
	return true
}

// leave performs the next step in s of l, the participant with the given bit, which leaves. It
// returns false if no step is left.
func (c Watch) leave(s *watchState, l *leaver, bit uint8) bool {
	switch l.pc {
	case lvSay:
		if l.pc = lvCount; c.Bug == LeaveLate {
			l.pc = lvBreak
			break
		}
		s.said |= bit
	case lvCount:
		if l.pc = lvBreak; c.Bug == LeaveLate {
			s.said |= bit
			l.pc = lvGone
		}
		s.left++
	case lvBreak:
		if l.pc = lvTake; s.broken && c.Bug == AbortQuiet {
			l.pc = lvGone
		}
		s.broken = true
	case lvTake:
		l.woken, s.bits, l.pc = s.bits, 0, lvWake
	case lvWake:
		if l.woken != 0 {
			i := 0
			for l.woken>>i&1 == 0 {
				i++
			}
			s.w[i].bell = true
			if l.woken &^= 1 << i; c.Bug == WakeFirstOnly {
				l.woken = 0
			}
			break
		}
		if l.pc = lvGone; c.Bug == LeaveLate && s.said&bit == 0 {
			l.pc = lvCount
		}
	default:
		return false
	}
	return true
}

func (c Watch) all() uint8 { return 1<<c.Watchers - 1 }

// reap emits the state after the reaper's next step, if there is one. The reaper marks all dead
// participants, wakes every watcher, and frees the seats.
func (c Watch) reap(s watchState, emit func(watchState)) {
	unmarked := withLife(s.l[:], killed) != 0
	switch n := s; {
	case s.reaping != 0 && c.Bug == ReapQuiet:
		n.reaping, n.freeing = 0, true
		emit(n)
	case s.reaping != 0:
		i := 0
		for s.reaping>>i&1 == 0 {
			i++
		}
		n.w[i].bell = true
		n.reaping &^= 1 << i
		n.freeing = n.reaping == 0
		emit(n)
	case s.freeing:
		if n.freeing = false; c.Bug == ReapWakesFirst {
			n.mark()
		}
		n.free()
		emit(n)
	case unmarked && c.Bug == ReapWakesFirst:
		n.reaping = c.all()
		emit(n)
	case unmarked:
		n.mark()
		if n.reaping = c.all(); c.Bug == ReapFreesFirst {
			n.free()
		}
		emit(n)
	}
}

func (s *watchState) mark() {
	for i := range s.l {
		if s.l[i].life == killed {
			s.l[i].life, s.dead = marked, true
		}
	}
}

func (s *watchState) free() {
	for i := range s.l {
		if s.l[i].life == marked {
			s.l[i].life = reaped
		}
	}
	s.dead = false
}

func (c Watch) done(s *watchState) error {
	for i, w := range s.w[:c.Watchers] {
		if w.pc != waParked {
			return fmt.Errorf("watcher %d is stuck", i)
		}
		for k, l := range s.l {
			if (l.pc == lvGone || !l.lives()) && w.knows>>k&1 == 0 {
				return fmt.Errorf("watcher %d does not know that %d is gone", i, k)
			}
		}
	}
	return nil
}
