package park

import (
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// rewakeTime is the time after which a wakeup is repeated with another participant if the condition
// is still true.
const rewakeTime = 100 * time.Millisecond

// WakeParticipant wakes one participant that waits for the condition. A participant of another
// process may be stopped (SIGSTOP, a debugger, a frozen control group), and then it does not
// answer. So WakeParticipant sets a timer: if the condition is still true after [rewakeTime], and
// others wait, the next participant is woken. A queue has at most one such timer, and none if no
// participant waits.
func (q *Queue) WakeParticipant() {
	if q.Lot == nil || q.Bits.IsEmpty() {
		return
	}
	last := int(q.woken.Load())
	seat, woken := q.Lot.WakeOne(q.Bits, last)
	if !woken {
		return
	}
	q.woken.Store(int32(seat))
	if seat != q.Lot.seat && !(word.Crashing && word.IsControlled()) && q.rewoken.CompareAndSwap(false, true) {
		time.AfterFunc(rewakeTime, q.rewakeParticipant)
	}
}

// rewakeParticipant wakes the next participant if the condition is still true. The timer of
// [Queue.WakeParticipant] calls it. It runs in a lane, so that Close of the domain waits for it,
// and is counted in waking, so that Close of the queue waits for it.
func (q *Queue) rewakeParticipant() {
	q.rewoken.Store(false)
	q.waking.Add(1)
	defer q.waking.Add(-1)
	q.Lot.domain.RunInLane(func() {
		if !q.closed.Load() {
			q.passToProcess()
		}
	})
}
