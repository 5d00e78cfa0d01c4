package arena

import "time"

// rewakeTime is how long a woken participant has, before another one is woken for the same thing.
const rewakeTime = 100 * time.Millisecond

// rewake wakes one of the participants that wait in other processes for the condition. The one that
// is woken may be stopped (SIGSTOP, a debugger, a frozen control group) and take nothing. If the
// condition is still true after a while, and others wait, the next one is woken. There is no timer
// where nobody waits, and one at a time otherwise.
func (l *waitQueue) rewake() {
	if l.d == nil || empty(l.bits) {
		return // the board has no d: nobody waits for a name
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

// rewakeAgain is what the timer calls. It runs in a lane, so that Close of the domain waits for it,
// and counts in waking, so that shut does.
func (l *waitQueue) rewakeAgain() {
	l.rewoken.Store(false)
	l.waking.Add(1)
	defer l.waking.Add(-1)
	in, err := l.d.enter()
	if err != nil {
		return
	}
	defer in.unlock()
	if !l.closed.Load() {
		l.passOn()
	}
}
