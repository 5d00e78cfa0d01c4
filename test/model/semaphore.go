package model

import "fmt"

// The semaphore model: participants acquire and release a permit under a lock that is held for a
// few steps. The state word is written before the share that it names. The next holder of a dead
// participant's lock writes that share again.
//
// Invariants:
//   - The number of permits in use must not exceed the total.
//   - A death must not lose a permit.
//   - No participant may wait while a permit is available.
//
// Waits are steps that are not enabled. The mutex model shows how a waiter is woken.

type semPC uint8

const (
	sWait semPC = iota // waits for a permit
	sEnter
	sRedo
	sLook
	sSettle // the share of a dead participant: the state is written
	sGrant  // the same for its own share
	sExit
	sHold
	sDone
)

type semShare struct {
	epoch uint8
	count uint8
}

type semWord struct {
	permits uint8
	seat    uint8 // seat + 1, or 0 for none
	share   uint8
}

type semUser struct {
	participant
	pc      semPC
	left    uint8
	release bool
	has     uint8
	from    lockWord // previous holder of the lock that it took over
	seat    uint8    // seat with the share to settle
}

const semUsers = 3

type semState struct {
	lock    lockWord
	word    semWord
	shares  [semUsers]semShare
	p       [semUsers]semUser
	rejoins toll
	kills   toll
}

// A Semaphore configures the semaphore model: participants acquire and release permits. Kills
// limits the kills, and Rejoins the reused seats. Bug is a mutation that must be detected, or
// "".
type Semaphore struct {
	Permits int
	Takes   int // of each participant
	Kills   int
	Rejoins int
	Bug     string
}

// Mutations of the semaphore model.
const (
	NoRedo       = "the next holder of a dead one's lock does not write the share again"
	ShareFirst   = "the share is written before the state"
	BlindSettle  = "the permits of the dead come back before their share is named"
	NoSettle     = "the permits of the dead do not come back"
	ForgetShare  = "a participant that comes into the seat of a dead one overwrites its share"
	NoOrphan     = "a waiter does not see that one died in the middle of taking the last permit"
	SettleLiving = "the permits of who is only suspected come back"
)

// Model returns the transition system of c, for [Explore].
func (c Semaphore) Model() Model[semState] {
	s := semState{word: semWord{permits: uint8(c.Permits)}}
	for i := range s.p {
		s.p[i].left = uint8(c.Takes)
	}
	return Model[semState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Semaphore) steps(s semState, emit func(semState)) {
	for i := range s.p {
		n := s
		switch p := &n.p[i]; {
		case p.lives():
			if c.step(&n, i) {
				emit(n)
			}
		case p.reap():
			emit(n)
		}
	}
}

func (c Semaphore) events(s semState, emit func(semState)) {
	for i := range s.p {
		n := s
		switch p := &n.p[i]; {
		case n.kills.kill(&p.process, c.Kills):
			*p = semUser{participant: p.participant}
			emit(n)
		case n.rejoins.rejoin(&p.participant, c.Rejoins):
			*p = semUser{participant: p.participant, left: 1}
			emit(n)
		}
	}
}

func (c Semaphore) gone(s *semState, seat int, epoch uint8) bool {
	p := &s.p[seat]
	return p.gone(epoch) || c.Bug == SettleLiving && p.pc == sHold
}

// shareOfDead returns the seat of a participant that is gone and has a share. found is false if
// there is none.
func (c Semaphore) shareOfDead(s *semState) (seat int, found bool) {
	for i, h := range s.shares {
		if h.count > 0 && c.gone(s, i, h.epoch) && c.Bug != NoSettle {
			return i, true
		}
	}
	return 0, false
}

func (c Semaphore) step(s *semState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case sWait:
		if p.left == 0 {
			p.pc = sDone
			break
		}
		w := s.lock
		orphan := w.holder != 0 && c.gone(s, int(w.holder-1), w.epoch) && c.Bug != NoOrphan
		if _, found := c.shareOfDead(s); s.word.permits == 0 && !found && !orphan {
			return false
		}
		p.pc = sEnter
	case sEnter:
		return c.enter(s, i)
	case sRedo:
		c.redo(s, p.from)
		p.from, p.pc = lockWord{}, sLook
	case sLook:
		c.decideAction(s, i)
	case sSettle:
		s.shares[p.seat].count = 0
		if c.Bug == BlindSettle {
			s.word.seat = 0
		}
		p.seat, p.pc = 0, sLook
	case sGrant:
		c.second(s, i)
		p.pc = sExit
	case sExit:
		c.exit(s, p)
	case sHold:
		p.release, p.pc = true, sEnter
	default:
		return false
	}
	return true
}

func (c Semaphore) enter(s *semState, i int) bool {
	p, w := &s.p[i], s.lock
	if w.holder != 0 && !c.gone(s, int(w.holder-1), w.epoch) {
		return false
	}
	s.lock = lockWord{holder: uint8(i + 1), epoch: p.epoch}
	if p.pc = sLook; w.holder != 0 && c.Bug != NoRedo {
		p.from, p.pc = w, sRedo
	}
	return true
}

func (c Semaphore) redo(s *semState, dead lockWord) {
	if s.word.seat == 0 {
		return
	}
	h := &s.shares[s.word.seat-1]
	if h.count = s.word.share; s.word.seat == dead.holder {
		h.epoch = dead.epoch
	}
}

// decideAction performs a step in s of participant i, which holds the lock: it decides on the
// action and performs the first of its two writes.
func (c Semaphore) decideAction(s *semState, i int) {
	p, mine := &s.p[i], s.shares[i]
	stale := mine.epoch != p.epoch && c.Bug != ForgetShare
	if seat, found := c.shareOfDead(s); found && !p.release && (s.word.permits == 0 || stale) {
		n := s.shares[seat].count
		p.seat, p.pc = uint8(seat), sSettle
		if s.word = (semWord{s.word.permits + n, uint8(seat + 1), 0}); c.Bug == BlindSettle {
			s.word.seat = 0
		}
		return
	}
	if !p.release && s.word.permits == 0 {
		p.pc = sExit
		return
	}
	c.first(s, i)
	p.pc = sGrant
}

// first and second are the two writes of a grant, in the order that the mutation determines.
func (c Semaphore) first(s *semState, i int)  { c.write(s, i, c.Bug != ShareFirst) }
func (c Semaphore) second(s *semState, i int) { c.write(s, i, c.Bug == ShareFirst) }

func (c Semaphore) write(s *semState, i int, state bool) {
	p := &s.p[i]
	if !state {
		if c.Bug != ShareFirst {
			s.shares[i] = semShare{p.epoch, s.word.share}
			return
		}
		s.shares[i] = semShare{p.epoch, c.share(s, i)}
		return
	}
	permits := s.word.permits - 1
	if p.release {
		permits = s.word.permits + 1
		p.has--
	}
	share := c.share(s, i)
	if c.Bug == ShareFirst {
		share = s.shares[i].count
	}
	s.word = semWord{permits, uint8(i + 1), share}
}

// share returns the new value of participant i's share after its acquisition or release.
func (c Semaphore) share(s *semState, i int) uint8 {
	p, n := &s.p[i], uint8(0)
	if s.shares[i].epoch == p.epoch {
		n = s.shares[i].count
	}
	if p.release {
		return n - 1
	}
	return n + 1
}

func (c Semaphore) exit(s *semState, p *semUser) {
	s.lock = lockWord{}
	i := int(s.word.seat) - 1
	switch {
	case p.release:
		p.release, p.pc = false, sWait
	case i >= 0 && p == &s.p[i] && s.shares[i].epoch == p.epoch && s.shares[i].count > p.has:
		p.has++
		p.left--
		p.pc = sHold
	default:
		p.pc = sWait
	}
}

func (c Semaphore) check(s *semState) error {
	out := uint8(0)
	for i := range s.p {
		if s.p[i].lives() {
			out += s.p[i].has
		}
	}
	if int(out) > c.Permits || int(s.word.permits) > c.Permits {
		return fmt.Errorf("%d permits are out, and %d are there, of %d", out, s.word.permits, c.Permits)
	}
	return nil
}

func (c Semaphore) done(s *semState) error {
	for i := range s.p {
		if p := &s.p[i]; p.lives() && p.pc != sDone {
			return fmt.Errorf("participant %d waits for ever", i)
		}
	}
	if w := s.lock; w.holder != 0 {
		c.redo(s, w) // as the next holder would
	}
	sum := s.word.permits
	for _, h := range s.shares {
		sum += h.count
	}
	if int(sum) != c.Permits {
		return fmt.Errorf("%d permits of %d", sum, c.Permits)
	}
	return nil
}
