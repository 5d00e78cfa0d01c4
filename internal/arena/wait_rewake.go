package arena

import (
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// rewakeTime is the time after which a wakeup is repeated with another participant if the condition
// is still true.
const rewakeTime = 100 * time.Millisecond

// wakeParticipant wakes one participant that waits for the condition. A participant of another
// process may be stopped (SIGSTOP, a debugger, a frozen control group), and then it does not
// answer. So wakeParticipant sets a timer: if the condition is still true after [rewakeTime], and
// others wait, the next participant is woken. A queue has at most one such timer, and none if no
// participant waits.
func (l *waitQueue) wakeParticipant() {
	if l.d == nil || l.bits.IsEmpty() {
		return // the queue of the board has no domain, and no waiters
	}
	last := int(l.woken.Load())
	seat, woken := l.d.wakeOne(l.bits, last)
	if !woken {
		return
	}
	l.woken.Store(int32(seat))
	if seat != l.d.seat && !(word.Crashing && word.IsControlled()) && l.rewoken.CompareAndSwap(false, true) {
		time.AfterFunc(rewakeTime, l.rewakeParticipant)
	}
}

// rewakeParticipant is called by the timer. It runs in a lane, so that Close of the domain waits
// for it, and is counted in waking, so that closeQueue waits for it.
func (l *waitQueue) rewakeParticipant() {
	l.rewoken.Store(false)
	l.waking.Add(1)
	defer l.waking.Add(-1)
	in, err := l.d.acquireLane()
	if err != nil {
		return
	}
	defer in.unlock()
	if !l.closed.Load() {
		l.passToProcess()
	}
}
