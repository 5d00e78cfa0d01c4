package arena

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

// becomeNapper makes the calling goroutine the napper of the process. It reports false if there is
// one already. If it reports true, the caller must test its condition, may call [Domain.napFor],
// and must call [Domain.finishNap] in any case.
func (d *Domain) becomeNapper() bool {
	if word.Crashing && word.IsControlled() || !d.park.napper.TryLock() {
		return false
	}
	d.mem.Participants[d.seat].Nap.Store(napping)
	return true
}

// napFor blocks the thread until the nap is ended, most has passed, or ctx ends.
func (d *Domain) napFor(ctx context.Context, most time.Duration) {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end))
	}
	d.park.alarm.setCallback(ctx, d.endNap)
	if most > 0 && ctx.Err() == nil { // if ctx ends after this test, endNap finds the word napping
		d.mem.Participants[d.seat].Nap.FutexWait(napping, most)
	}
}

// endNap ends the nap of a goroutine of this process, if there is one. It does nothing after the
// domain was closed, because the nap word may then belong to another participant.
func (d *Domain) endNap() {
	if in, err := d.acquireLane(); err == nil {
		d.endNapOf(d.seat, awake)
		d.park.wakeBarrier()
		in.unlock()
	}
}

// An alarm calls a function when a context ends. It stays registered between naps, because
// consecutive naps mostly have the same context. The caller must hold the napper's lock.
type alarm struct {
	done <-chan struct{}
	stop func() bool
}

// setCallback has f called when ctx ends, in place of any earlier registration.
func (a *alarm) setCallback(ctx context.Context, f func()) {
	if ctx.Done() == a.done {
		return
	}
	a.cancel()
	if a.done = ctx.Done(); a.done != nil {
		a.stop = context.AfterFunc(ctx, f)
	}
}

// cancel removes the registration.
func (a *alarm) cancel() {
	if a.done != nil {
		a.stop()
		a.done = nil
	}
}

// finishNap ends the nap. It reports whether another process has roused this one, for any of its
// wait queues. In that case it also wakes goroutines of the process that wait for the topic and can
// go on.
func (d *Domain) finishNap() bool {
	w := &d.mem.Participants[d.seat].Nap
	heard, t := false, topic(0)
	if !w.CAS(napping, awake) {
		v := w.Load()
		heard, t = v&napMask == roused && w.CAS(v, awake), v>>topicShift
	}
	d.park.napper.Unlock()
	if heard {
		d.wakeSelf(t)
	}
	return heard
}

// endNapOf ends the nap of the participant in a seat and sets its nap word to now. It reports
// whether the participant was napping.
func (d *Domain) endNapOf(seat int, now uint64) bool {
	w := &d.mem.Participants[seat].Nap
	if w.Load() != napping || !w.CAS(napping, now) {
		return false
	}
	w.FutexWake()
	return true
}

// preventNaps ends a nap in progress and prevents further ones. Close must call it before the seat,
// and with it the nap word, may go to another participant.
func (d *Domain) preventNaps() {
	d.endNapOf(d.seat, awake)
	d.park.wakeBarrier()
	d.park.napper.Lock()
	d.park.alarm.cancel()
}
