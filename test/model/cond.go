package model

import "fmt"

// The cond model: one participant adds items under a lock and notifies once for each, while it
// holds the lock. Up to three participants take one item each and wait while there is none.
//
// Invariant: in a terminal state, no living participant may wait while there is an item. Waits are
// steps that are not enabled. The mutex and wake models show that an enabled participant is woken.

type condPC uint8

const (
	cwLock condPC = iota
	cwMark
	cwUnshare
	cwCheck
	cwAdd
	cwNotify
	cwShare
	cwArrive
	cwLetGo
	cwWait
	cwServe // serves all waiters, one after another
	cwForget
	cwForgo
	cwUnlock
	cwEnd
)

const (
	condTakers = 3
	condAll    = condTakers + 1 // the last one adds
)

type condUser struct {
	process
	pc      condPC
	left    uint8
	shared  bool // it has a share
	ticket  uint8
	arrived uint8
	served  uint8
	at      uint8 // the seat that it serves
	then    condPC
}

type condState struct {
	holder uint8 // holder + 1
	dirty  bool
	things uint8
	p      [condAll]condUser
	kills  toll
	ended  uint8 // canceled waits
}

// A Cond configures the cond model: Takers participants, at most three, wait for the Things that
// another one adds. Kills limits the kills, and Ends the canceled waits. Bug is a mutation that
// must be detected, or "".
type Cond struct {
	Takers int
	Things int
	Kills  int
	Ends   int
	Bug    string
}

// Mutations of the cond model.
const (
	CondDeaf      = "a waiter does not see that another one who waited is gone"
	CondNoHolder  = "a waiter does not see that the holder of the lock is gone"
	UnshareEarly  = "a notified waiter gives up its share before it has the lock"
	ForgetFirst   = "the share of the dead is cleared before everybody is served"
	NoForgo       = "a waiter that gives up leaves its ticket to be served"
	ArriveLate    = "a ticket is taken after the lock was given back"
	RepairQuiet   = "the next holder of a dead one's lock does not notify all before it says that all is well"
	NotifyBlindly = "a notifier serves the dead like the living, and does not look for them"
)

// Model returns the transition system of c, for [Explore].
func (c Cond) Model() Model[condState] {
	var s condState
	for i := range condTakers {
		if s.p[i].left = 1; i >= c.Takers {
			s.p[i].pc = cwEnd
		}
	}
	s.p[condTakers].left = uint8(c.Things)
	return Model[condState]{Init: s, Steps: c.steps, Events: c.events,
		Check: func(*condState) error { return nil }, Done: c.done}
}

func (c Cond) steps(s condState, emit func(condState)) {
	for i := range s.p {
		p := &s.p[i]
		switch n := s; {
		case p.life == killed:
			n.p[i].life = marked
			emit(n)
		case !p.lives():
		case p.pc == cwNotify:
			c.notify(s, i, emit)
		case c.step(&n, i):
			emit(n)
		}
	}
}

func (c Cond) events(s condState, emit func(condState)) {
	for i := range s.p {
		if n := s; s.p[i].pc != cwEnd && n.kills.kill(&n.p[i].process, c.Kills) {
			emit(n)
		}
		if n := s; s.p[i].lives() && s.p[i].pc == cwWait && int(s.ended) < c.Ends {
			n.p[i].pc = cwForgo
			n.ended++
			emit(n)
		}
	}
}

func (s *condState) gone(i int) bool { return s.p[i].dead() }

func (s *condState) bereft() bool {
	for i := range s.p {
		if s.p[i].shared && s.gone(i) {
			return true
		}
	}
	return false
}

func (s *condState) troubled() bool { return s.dirty || s.holder != 0 && s.gone(int(s.holder-1)) }

func (c Cond) step(s *condState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case cwLock:
		if s.holder != 0 && !s.gone(int(s.holder-1)) {
			return false
		}
		s.dirty = s.dirty || s.holder != 0
		s.holder, p.pc = uint8(i+1), cwUnshare
	case cwUnshare: // a participant that must repair has no share any more
		p.shared, p.pc = false, cwMark
		if s.dirty && c.Bug != RepairQuiet {
			p.pc, p.then, p.at = cwServe, cwMark, 0
		}
	case cwMark:
		s.dirty, p.pc = false, cwCheck
		if i == condTakers {
			p.pc = cwAdd
		}
	case cwAdd:
		s.things++
		p.left--
		c.grieve(s, p, cwNotify)
	case cwCheck:
		if p.pc = cwShare; s.things > 0 {
			s.things--
			p.left--
			p.pc = cwUnlock
			break
		}
		c.grieve(s, p, cwShare)
	case cwShare:
		p.shared = true
		if p.pc = cwArrive; c.Bug == ArriveLate {
			p.pc = cwLetGo
		}
	case cwArrive:
		p.ticket = p.arrived
		p.arrived++
		if p.pc = cwLetGo; c.Bug == ArriveLate {
			p.pc = cwWait
		}
	case cwLetGo:
		s.holder = 0
		if p.pc = cwWait; c.Bug == ArriveLate {
			p.pc = cwArrive
		}
	case cwWait:
		return c.wake(s, p)
	case cwServe, cwForget:
		c.serveWaiters(s, p)
	case cwForgo:
		if c.Bug != NoForgo {
			p.served = p.arrived
		}
		p.pc = cwLock
	case cwUnlock:
		s.holder = 0
		if p.pc = cwLock; p.left == 0 {
			p.pc = cwEnd
		}
	default:
		return false
	}
	return true
}

// wake ends the wait of p in s because its ticket was served or because of a death. It returns
// false if neither has happened, so that no step is enabled.
func (c Cond) wake(s *condState, p *condUser) bool {
	served := p.served > p.ticket
	bereft := s.bereft() && c.Bug != CondDeaf
	if !served && !bereft && (!s.troubled() || c.Bug == CondNoHolder) {
		return false
	}
	if c.Bug == UnshareEarly {
		p.shared = false
	}
	switch {
	case bereft:
		c.grieve(s, p, cwForgo)
	case served:
		p.pc = cwLock
	default:
		p.pc = cwForgo
	}
	return true
}

// grieve sets the next step of p: if a waiter in s is gone, p first serves all waiters, and then
// continues with then.
func (c Cond) grieve(s *condState, p *condUser, then condPC) {
	p.pc = then
	if !s.bereft() || c.Bug == CondDeaf || c.Bug == NotifyBlindly && then == cwNotify {
		return
	}
	p.then, p.at = then, 0
	if p.pc = cwServe; c.Bug == ForgetFirst {
		p.pc = cwForget
	}
}

// serveWaiters performs one step in s of p, which serves all waiters and then clears the
// participants that are gone. After the last one p continues with p.then.
func (c Cond) serveWaiters(s *condState, p *condUser) {
	q := &s.p[p.at]
	if p.pc == cwServe {
		q.served = q.arrived
	} else if q.shared && s.gone(int(p.at)) {
		q.shared = false
	}
	if p.at++; p.at < condAll {
		return
	}
	p.at = 0
	first := c.Bug == ForgetFirst
	switch {
	case p.pc == cwServe && !first:
		p.pc = cwForget
	case p.pc == cwForget && first:
		p.pc = cwServe
	default:
		p.pc, p.then = p.then, 0
	}
}

// notify emits the states after participant i has served one ticket of some participant, one
// state for each, or the state after it has found none to serve.
func (c Cond) notify(s condState, i int, emit func(condState)) {
	s.p[i].pc = cwUnlock
	found := false
	for k := range s.p {
		if n := s; s.p[k].served < s.p[k].arrived {
			n.p[k].served++
			found = true
			emit(n)
		}
	}
	if !found {
		emit(s)
	}
}

func (c Cond) done(s *condState) error {
	for i := range s.p {
		p := &s.p[i]
		if p.lives() && p.pc == cwWait && s.things > 0 {
			return fmt.Errorf("participant %d waits, and there are %d", i, s.things)
		}
		if p.lives() && p.pc != cwWait && p.pc != cwEnd {
			return fmt.Errorf("participant %d is stuck", i)
		}
	}
	return nil
}
