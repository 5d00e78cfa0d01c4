package model

import "fmt"

// The rwmutex model: a writer acquires a lock with a word that names it, and then waits until no
// living participant has a share. A reader increments its share and then checks the lock. The
// protected data is modified in two steps.
//
// Invariants:
//   - A reader and a writer must not hold the lock at the same time, and no reader may read half
//     modified data.
//   - A writer that finds the data half modified must have been notified of the death.
//   - No participant may wait for a dead one, or forever.
//
// Waits are steps that are not enabled. The mutex and wake models cover wake-ups.

type rwPC uint8

const (
	rwNext rwPC = iota
	rwShare
	rwLook
	rwRead
	rwBack // releases the share to try again
	rwLeave
	rwTry
	rwDrain
	rwFirst
	rwSecond
	rwMark
	rwUnlock
	rwWithdraw
	rwDone
)

const rwUsers = 3

type rwShareWord struct {
	epoch uint8
	count uint8
}

type rwUser struct {
	participant
	pc    rwPC
	left  uint8
	write bool
	told  bool
	at    uint8    // share that a writer examines
	was   lockWord // previous holder of the lock that it took over
}

type rwState struct {
	word    lockWord
	shares  [rwUsers]rwShareWord
	half    bool
	p       [rwUsers]rwUser
	kills   toll
	rejoins toll
}

// An RWMutex configures the rwmutex model: a writer excludes the readers of a lock and both
// survive deaths. Kills limits the kills, and Rejoins the reused seats. Bug is a mutation that
// must be detected, or "".
type RWMutex struct {
	Writers int // the other participants are readers
	Rounds  int // of each participant
	Kills   int
	Rejoins int
	Bug     string
}

// Mutations of the rwmutex model.
const (
	LookFirst      = "a reader looks at the lock before it counts itself"
	DrainFirst     = "a writer waits for readers before it takes the lock"
	DrainDead      = "a writer waits for readers that are dead"
	DrainSuspected = "a writer does not wait for readers that are only suspected"
	ReadTorn       = "a reader takes the lock of a dead writer for a free one"
	KeepShare      = "a reader that finds a writer keeps its share while it waits"
	ShareOfSeat    = "a share says in which seat its reader is, and not who it is"
	RWNotTold      = "a writer that takes the lock of a dead one is not told"
	RWGiveUpFrees  = "a writer that gives up waiting for readers frees the lock of a dead one"
)

// Model returns the transition system of c, for [Explore].
func (c RWMutex) Model() Model[rwState] {
	var s rwState
	for i := range s.p {
		s.p[i] = rwUser{left: uint8(c.Rounds), write: i < c.Writers}
	}
	return Model[rwState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c RWMutex) steps(s rwState, emit func(rwState)) {
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

// events emits the states after a death, a new reader in a free seat, and the decision of a
// writer to give up.
func (c RWMutex) events(s rwState, emit func(rwState)) {
	for i := range s.p {
		n := s
		switch p := &n.p[i]; {
		case p.pc != rwDone && n.kills.kill(&p.process, c.Kills):
			*p = rwUser{participant: p.participant}
			emit(n)
		case n.rejoins.rejoin(&p.participant, c.Rejoins):
			*p = rwUser{participant: p.participant, left: 1}
			emit(n)
		}
		if n := s; s.p[i].lives() && s.p[i].pc == rwDrain {
			n.p[i].pc = rwWithdraw
			emit(n)
		}
	}
}

func (c RWMutex) gone(s *rwState, seat int, epoch uint8) bool {
	return s.p[seat].gone(epoch)
}

func (c RWMutex) orphan(s *rwState) bool {
	return s.word.holder != 0 && c.gone(s, int(s.word.holder-1), s.word.epoch)
}

// drained reports whether no living participant has the share of a seat.
func (c RWMutex) drained(s *rwState, seat int) bool {
	h := s.shares[seat]
	switch {
	case h.count == 0 || c.Bug == DrainSuspected && s.p[seat].pc == rwRead:
		return true
	case c.Bug == DrainDead:
		return false
	}
	return c.gone(s, seat, h.epoch)
}

func (c RWMutex) step(s *rwState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case rwNext:
		return c.next(s, p)
	case rwShare:
		c.share(&s.shares[i], p)
		if p.pc = rwLook; c.Bug == LookFirst {
			p.pc = rwRead
		}
	case rwLook:
		if p.pc = rwBack; s.word.holder == 0 || c.Bug == ReadTorn && c.orphan(s) {
			p.pc = rwRead
		} else if c.Bug == KeepShare {
			return false
		}
	case rwRead:
		p.left--
		p.pc = rwLeave
	case rwBack, rwLeave:
		s.shares[i].count--
		p.pc = rwNext
	default:
		return c.writeStep(s, i)
	}
	return true
}

// next starts a read or a write of p in s, or ends p. It returns false if p must wait for the
// lock.
func (c RWMutex) next(s *rwState, p *rwUser) bool {
	switch {
	case p.left == 0 || s.word.lost:
		p.pc, p.left = rwDone, 0
	case p.write && c.Bug == DrainFirst:
		p.pc = rwDrain
	case p.write:
		p.pc = rwTry
	case s.word.holder == 0 || c.Bug == ReadTorn && c.orphan(s):
		p.pc = rwShare
	case c.orphan(s):
		p.pc, p.left = rwDone, 0 // with the error for a lost lock
	default:
		return false
	}
	return true
}

func (c RWMutex) share(h *rwShareWord, p *rwUser) {
	if h.epoch != p.epoch && c.Bug != ShareOfSeat {
		*h = rwShareWord{epoch: p.epoch}
	}
	h.count++
}

func (c RWMutex) writeStep(s *rwState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case rwTry:
		if s.word.holder != 0 && !c.orphan(s) {
			return false
		}
		c.takeLock(s, i)
		if p.pc = rwDrain; c.Bug == DrainFirst {
			p.pc = rwFirst
		}
	case rwDrain:
		if !c.drained(s, int(p.at)) {
			return false
		}
		if p.at++; p.at == rwUsers {
			if p.at, p.pc = 0, rwFirst; c.Bug == DrainFirst {
				p.pc = rwTry
			}
		}
	case rwFirst:
		s.half, p.pc = true, rwSecond
	case rwSecond:
		s.half, p.pc = false, rwUnlock
		if p.told {
			p.pc = rwMark
		}
	case rwMark:
		s.word.dirty, p.pc = false, rwUnlock
	case rwUnlock:
		s.word = lockWord{lost: s.word.dirty}
		p.left--
		p.was, p.told, p.pc = lockWord{}, false, rwNext
	case rwWithdraw:
		if c.Bug != DrainFirst {
			s.word = p.was
		}
		if c.Bug == RWGiveUpFrees {
			s.word = lockWord{}
		}
		p.left--
		p.was, p.told, p.at, p.pc = lockWord{}, false, 0, rwNext
	default:
		return false
	}
	return true
}

func (c RWMutex) takeLock(s *rwState, i int) {
	p := &s.p[i]
	p.was = s.word
	p.told = s.word.holder != 0 && c.Bug != RWNotTold
	s.word = lockWord{holder: uint8(i + 1), epoch: p.epoch, dirty: p.told}
}

func (c RWMutex) check(s *rwState) error {
	readers, writers := 0, 0
	for i := range s.p {
		p := &s.p[i]
		switch {
		case !p.lives():
		case p.pc == rwRead:
			readers++
		case p.pc == rwFirst && s.half && !p.told:
			return fmt.Errorf("writer %d finds it half done and is not told", i)
		case p.pc == rwFirst || p.pc == rwSecond:
			writers++
		}
	}
	switch {
	case writers > 1 || writers == 1 && readers > 0:
		return fmt.Errorf("%d writers and %d readers at once", writers, readers)
	case readers > 0 && s.half:
		return fmt.Errorf("a reader finds it half done")
	}
	return nil
}

func (c RWMutex) done(s *rwState) error {
	for i := range s.p {
		if s.p[i].lives() && s.p[i].pc != rwDone {
			return fmt.Errorf("participant %d waits for ever", i)
		}
	}
	return nil
}
