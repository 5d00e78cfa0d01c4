package model

import "fmt"

// The mutex model: participants acquire a lock with a word that names its holder, modify the
// protected data in two steps, and release the lock. A seat may be reused. The reaper does not
// modify locks: it marks the dead, clears their bits in the bitmap and wakes all participants.
//
// Invariants:
//   - At most one participant holds the lock.
//   - A participant that finds the protected data half modified must have been notified of the
//     death.
//   - No wake-up is lost.

type mutexPC uint8

const (
	mTry mutexPC = iota
	mSetBit
	mAgain
	mParked
	mFirst // first of the two steps of the modification
	mSecond
	mMarkGood
	mWithdraw
	mUnlock
	mPick
	mWake
	mDone
)

type locker struct {
	participant
	pc     mutexPC
	left   uint8 // remaining acquisitions
	told   bool
	woken  bool
	chosen uint8
	was    lockWord // previous holder of the lock that it took over
}

type lockWord struct {
	holder uint8 // 1 to lockers; 0 means free
	epoch  uint8
	dirty  bool
	lost   bool
}

const lockers = 3

type mutexState struct {
	word    lockWord
	half    bool // the protected data is half modified
	bits    uint8
	p       [lockers]locker
	reaper  uint8
	rejoins toll
	kills   toll
}

// A Mutex configures the mutex model: a lock names its holder and survives the holder's death.
// Kills limits the kills. Bug is a mutation that must be detected, or "".
type Mutex struct {
	Locks   int // of each participant
	Kills   int
	Rejoins int // reused seats
	Bug     string
}

// Mutations of the mutex model.
const (
	SeatOnly       = "the lock names a seat and not who was in it"
	TakeFromLiving = "a lock is taken from a holder that is only suspected"
	NotTold        = "the next holder of a dead one's lock is not told"
	UnlockForgets  = "an unlock without a mark frees the lock of a dead one"
	WithdrawFrees  = "a participant that gives the lock of a dead one back untouched frees it"
	LockNoLook     = "a waiter does not look at the lock again after it set its bit"
	UnlockQuiet    = "an unlock wakes nobody"
	LockNoPassOn   = "a participant that is woken and does not wait does not pass the wakeup on"
	DeadBitsStay   = "the reaper leaves the bits of the dead"
	LockReaperMute = "the reaper wakes nobody"
	WakeThenBits   = "the reaper wakes before it takes the bits of the dead"
)

// Model returns the transition system of c, for [Explore].
func (c Mutex) Model() Model[mutexState] {
	var s mutexState
	for i := range s.p {
		s.p[i].left = uint8(c.Locks)
	}
	return Model[mutexState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Mutex) steps(s mutexState, emit func(mutexState)) {
	c.reap(s, emit)
	for i := range s.p {
		p := &s.p[i]
		switch {
		case !p.lives():
		case p.pc == mPick:
			c.pick(s, i, emit)
		default:
			if n := s; c.step(&n, i) {
				emit(n)
			}
		}
		if p.lives() && p.woken && p.pc != mAgain && p.pc != mParked { // it has no goroutine in the queue
			c.answer(s, i, emit)
		}
	}
}

// events emits the states after a death, a new participant in a free seat, the death of a
// reaper, and the decision of a participant that was told of a death to give the lock back
// unmodified.
func (c Mutex) events(s mutexState, emit func(mutexState)) {
	for i := range s.p {
		n := s
		switch p := &n.p[i]; {
		case p.pc != mDone && n.kills.kill(&p.process, c.Kills):
			*p = locker{participant: p.participant}
			emit(n)
		case n.rejoins.rejoin(&p.participant, c.Rejoins):
			*p = locker{participant: p.participant, left: 1}
			emit(n)
		}
		if n := s; s.p[i].lives() && s.p[i].pc == mFirst && s.p[i].told {
			n.p[i].pc = mWithdraw
			emit(n)
		}
	}
	if n := s; s.reaper != 0 && int(s.kills) < c.Kills {
		n.reaper = 0
		n.kills++
		emit(n)
	}
}

// gone reports whether the holder of w is known to be dead. w must have a holder.
func (c Mutex) gone(s *mutexState, w lockWord) bool {
	p := &s.p[w.holder-1]
	if c.Bug == TakeFromLiving && p.pc == mSecond {
		return true
	}
	return p.life == marked || c.Bug != SeatOnly && p.gone(w.epoch)
}

func (c Mutex) free(s *mutexState) bool {
	return s.word.lost || s.word.holder == 0 || c.gone(s, s.word)
}

func (c Mutex) step(s *mutexState, i int) bool {
	p := &s.p[i]
	switch p.pc {
	case mTry:
		c.try(s, i)
	case mSetBit:
		s.bits |= 1 << i
		if p.pc = mAgain; c.Bug == LockNoLook {
			p.pc = mParked
		}
	case mAgain:
		if p.pc = mParked; c.free(s) {
			p.pc = mTry
		}
	case mParked:
		if !p.woken {
			return false
		}
		p.woken, p.pc = false, mTry
	case mFirst:
		s.half, p.pc = true, mSecond
	case mSecond:
		s.half, p.pc = false, mUnlock
		if p.told {
			p.pc = mMarkGood
		}
	case mMarkGood:
		s.word.dirty, p.pc = false, mUnlock
	case mWithdraw:
		s.word = p.was
		if c.Bug == WithdrawFrees {
			s.word = lockWord{}
		}
		p.was, p.told, p.pc = lockWord{}, false, mPick
	case mUnlock:
		s.word = lockWord{lost: s.word.dirty && c.Bug != UnlockForgets}
		if p.was, p.told, p.pc = (lockWord{}), false, mPick; c.Bug == UnlockQuiet {
			p.pc = mTry
		}
	case mWake:
		n := &s.p[p.chosen-1]
		n.woken = n.woken || n.lives()
		if p.chosen, p.pc = 0, mTry; s.word.lost {
			p.pc = mPick // wakes all of them
		}
	default:
		return false
	}
	return true
}

func (c Mutex) try(s *mutexState, i int) {
	p := &s.p[i]
	switch w := s.word; {
	case p.left == 0 || w.lost:
		p.pc, p.left = mDone, 0
	case w.holder == 0:
		s.word = lockWord{holder: uint8(i + 1), epoch: p.epoch}
		p.left--
		p.pc = mFirst
	case c.gone(s, w):
		s.word = lockWord{holder: uint8(i + 1), epoch: p.epoch, dirty: c.Bug != NotTold}
		p.told, p.was = c.Bug != NotTold, w
		p.left--
		if p.pc = mFirst; i == lockers-1 { // it does not repair or mark the lock consistent
			p.pc = mUnlock
		}
	default:
		p.pc = mSetBit
	}
}

// pick emits the states after participant i has cleared the bit of a waiting participant, one
// state for each, or the state after it has found none and continues.
func (c Mutex) pick(s mutexState, i int, emit func(mutexState)) {
	if s.bits == 0 {
		s.p[i].pc = mTry
		emit(s)
		return
	}
	for w := range lockers {
		if n := s; s.bits>>w&1 == 1 {
			n.bits &^= 1 << w
			n.p[i].chosen, n.p[i].pc = uint8(w+1), mWake
			emit(n)
		}
	}
}

// answer emits the states after participant i has handled a wake-up although it no longer waits.
// It must pass the wake-up on if the lock is free.
func (c Mutex) answer(s mutexState, i int, emit func(mutexState)) {
	s.p[i].woken = false
	if !c.free(&s) || s.bits == 0 || c.Bug == LockNoPassOn {
		emit(s)
		return
	}
	for w := range lockers {
		if n := s; s.bits>>w&1 == 1 {
			n.bits &^= 1 << w
			n.p[w].woken = n.p[w].woken || n.p[w].lives()
			emit(n)
		}
	}
}

// reap emits the state after the reaper's next step. The reaper marks the dead, clears their
// bits, wakes all participants and frees the seats of the dead.
func (c Mutex) reap(s mutexState, emit func(mutexState)) {
	if withLife(s.p[:], killed)|withLife(s.p[:], marked) == 0 {
		return
	}
	order := [3]func(){
		func() {
			if c.Bug != DeadBitsStay {
				s.bits &^= withLife(s.p[:], marked)
			}
		},
		func() {
			for i := range s.p {
				s.p[i].woken = s.p[i].woken || s.p[i].lives() && c.Bug != LockReaperMute
			}
		},
	}
	if c.Bug == WakeThenBits {
		order[0], order[1] = order[1], order[0]
	}
	switch s.reaper {
	case 0:
		for i := range s.p {
			if s.p[i].life == killed {
				s.p[i].life = marked
			}
		}
	case 1, 2:
		order[s.reaper-1]()
	case 3:
		for i := range s.p {
			if s.p[i].life == marked {
				s.p[i] = locker{participant: s.p[i].participant}
				s.p[i].life = reaped
			}
		}
	}
	s.reaper = (s.reaper + 1) % 4
	emit(s)
}

func (c Mutex) check(s *mutexState) error {
	inside := 0
	for i := range s.p {
		p := &s.p[i]
		if !p.lives() || p.pc < mFirst || p.pc > mUnlock {
			continue
		}
		inside++
		if p.pc == mFirst && s.half && !p.told {
			return fmt.Errorf("participant %d finds it half done and is not told", i)
		}
	}
	if inside > 1 {
		return fmt.Errorf("%d hold the lock", inside)
	}
	return nil
}

func (c Mutex) done(s *mutexState) error {
	for i := range s.p {
		if s.p[i].lives() && s.p[i].pc == mParked && c.free(s) {
			return fmt.Errorf("participant %d sleeps and the lock is to be had", i)
		}
		if s.p[i].lives() && s.p[i].pc != mDone {
			return fmt.Errorf("participant %d waits for ever", i)
		}
	}
	return nil
}
