package shm

import "time"

// offerTime is how long who was rung for something has before it is offered to somebody else as
// well.
const offerTime = 100 * time.Millisecond

// offer rings one of those who wait in other processes for what there is to be had now. The
// participant that was rung may be stopped (SIGSTOP, a debugger, a frozen control group) and take
// nothing: if it is still to be had after a while, and others wait, the next one is rung. There is
// no timer where nobody waits, and one at a time where somebody does.
func (l *lot) offer() {
	if l.d == nil {
		return // of the board: nobody waits for a name
	}
	if l.d.ringOne(l.bits) && l.offered.CompareAndSwap(false, true) {
		time.AfterFunc(offerTime, l.offerAgain)
	}
}

// offerAgain is rung for the others. In a lane, Close of the domain waits for it, and shut for
// those who are ringing.
func (l *lot) offerAgain() {
	l.offered.Store(false)
	l.ringing.Add(1)
	defer l.ringing.Add(-1)
	in, err := l.d.enter()
	if err != nil {
		return
	}
	defer in.unlock()
	if !l.closed.Load() {
		l.passOn()
	}
}
