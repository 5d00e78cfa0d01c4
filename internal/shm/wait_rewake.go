package shm

import "time"

// rewakeTime is how long who was rung for something has before it is offered to somebody else as
// well.
const rewakeTime = 100 * time.Millisecond

// offer rings one of those who wait in other processes for what there is to be had now. The
// participant that was rung may be stopped (SIGSTOP, a debugger, a frozen control group) and take
// nothing: if it is still to be had after a while, and others wait, the next one is rung. There is
// no timer where nobody waits, and one at a time where somebody does.
func (l *waitQueue) rewake() {
	if l.d == nil {
		return // of the board: nobody waits for a name
	}
	last := int(l.woken.Load())
	seat, woken := l.d.wakeOne(l.bits, last)
	if !woken {
		return
	}
	l.woken.Store(int32(seat))
	if seat != l.d.seat && !(crashing && controlled()) && l.rewoken.CompareAndSwap(false, true) {
		time.AfterFunc(rewakeTime, l.rewakeAgain)
	}
}

// offerAgain is rung for the others. In a lane, Close of the domain waits for it, and shut for
// those who are ringing.
func (l *waitQueue) rewakeAgain() {
	l.rewoken.Store(false)
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
