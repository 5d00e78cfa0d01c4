package park

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Naps] Waking a parked goroutine takes a datagram, a poll, a read and two goroutine
// switches. So a goroutine that has spun in vain naps before it parks: it blocks its thread in
// futex(2) on the nap word of its participant (https://man7.org/linux/man-pages/man2/futex.2.html).
// The waker then sends no datagram. At most one goroutine of a process naps at a time, and only for
// a moment, so naps occupy at most one thread. If a waker dies or is stopped between its CAS of the
// nap word and its wake, the nap lasts its full time. After the nap, the goroutine parks.

// Values of a nap word: topic 62 | state 2. The topic is 0 unless the state is roused. The
// participant itself may change awake to napping, and any value to awake. Other participants may
// only change napping to roused.
const (
	awake   = iota
	napping // a goroutine sleeps on the word, or is about to
	roused  // the napper must do the work of the doorbell's goroutine for the topic

	topicShift = 2
	napMask    = 1<<topicShift - 1
)

// napTime is the longest time that a nap lasts. It bounds the delay if the waker dies between its
// CAS and its wake.
const napTime = 500 * time.Microsecond

// BecomeNapper makes the calling goroutine the napper of the process. It reports false if there is
// one already. If it reports true, the caller must test its condition, may call [Lot.NapFor],
// and must call [Lot.FinishNap] in any case.
func (p *Lot) BecomeNapper() bool {
	if word.Crashing && word.IsControlled() || !p.napper.TryLock() {
		return false
	}
	p.mem.Participants[p.seat].Nap.Store(napping)
	return true
}

// NapFor blocks the thread until the nap is ended, most has passed, or ctx ends. The caller must
// be the napper; see [Lot.BecomeNapper].
func (p *Lot) NapFor(ctx context.Context, most time.Duration) {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end))
	}
	p.alarm.callWhenDone(ctx, p.EndNap)
	if most > 0 && ctx.Err() == nil { // if ctx ends after this test, EndNap finds the word napping
		p.mem.Participants[p.seat].Nap.FutexWait(napping, most)
	}
}

// EndNap ends the nap of a goroutine of this process, if there is one. It does nothing after the
// domain was closed, because the nap word may then belong to another participant.
func (p *Lot) EndNap() {
	p.domain.RunInLane(func() {
		p.endNapOf(p.seat, awake)
		p.WakeBarrier()
	})
}

// An alarm calls a function when a context ends. It stays registered between naps, because
// consecutive naps mostly have the same context. The caller must hold the napper's lock.
type alarm struct {
	done <-chan struct{}
	stop func() bool
}

// callWhenDone has f called when ctx ends, in place of any earlier registration.
func (a *alarm) callWhenDone(ctx context.Context, f func()) {
	if ctx.Done() == a.done {
		return
	}
	a.removeCallback()
	if a.done = ctx.Done(); a.done != nil {
		a.stop = context.AfterFunc(ctx, f)
	}
}

// removeCallback removes the registration.
func (a *alarm) removeCallback() {
	if a.done != nil {
		a.stop()
		a.done = nil
	}
}

// FinishNap ends the nap that [Lot.BecomeNapper] has begun; see Note [Naps]. It reports whether
// another process has roused this one, for any of its wait queues. In that case it also wakes
// goroutines of the process that wait for the topic of that wakeup and can go on.
func (p *Lot) FinishNap() bool {
	w := &p.mem.Participants[p.seat].Nap
	heard, t := false, Topic(0)
	if !w.CAS(napping, awake) {
		v := w.Load()
		heard, t = v&napMask == roused && w.CAS(v, awake), v>>topicShift
	}
	p.napper.Unlock()
	if heard {
		p.wakeSelf(t)
	}
	return heard
}

// endNapOf ends the nap of the participant in a seat and sets its nap word to now, which is
// awake, or roused with a topic. It reports whether the participant was napping; otherwise it
// does nothing.
func (p *Lot) endNapOf(seat int, now uint64) bool {
	w := &p.mem.Participants[seat].Nap
	if w.Load() != napping || !w.CAS(napping, now) {
		return false
	}
	w.FutexWake()
	return true
}

// PreventNaps ends a nap in progress and prevents further ones. Close must call it before the seat,
// and with it the nap word, may go to another participant.
func (p *Lot) PreventNaps() {
	p.endNapOf(p.seat, awake)
	p.WakeBarrier()
	p.napper.Lock()
	p.alarm.removeCallback()
}

// IsNapping reports whether a goroutine of the participant in a seat naps, or is about to.
func (p *Lot) IsNapping(seat int) bool { return p.mem.Participants[seat].Nap.Load() == napping }

// StartNapAt makes the calling goroutine the napper of the process, which sleeps on the upper half
// of a barrier's state word; see Note [Naps at a barrier]. The word is woken when ctx ends, and at
// each wakeup of the process. StartNapAt reports false if the process has a napper already.
// Otherwise the caller must call [Lot.FinishNapAt].
func (p *Lot) StartNapAt(ctx context.Context, w *word.Word) bool {
	if !p.napper.TryLock() {
		return false
	}
	p.napsAt.Store(w)
	p.alarm.callWhenDone(ctx, p.EndNap)
	return true
}

// FinishNapAt ends the nap that [Lot.StartNapAt] has begun.
func (p *Lot) FinishNapAt() {
	p.napsAt.Store(nil)
	p.napper.Unlock()
}

// WakeBarrier wakes the goroutine that naps at a barrier, if there is one, so that it tests its
// condition.
func (p *Lot) WakeBarrier() {
	if w := p.napsAt.Load(); w != nil {
		w.FutexWakeUpper()
	}
}
