package shm

import (
	"context"
	"time"
)

// Note [Naps] To wake a goroutine that is parked takes a datagram, Go's poller, a read and two
// switches of goroutines. A goroutine that has spun in vain therefore first takes a nap: it sleeps
// with its thread on the nap word of its participant, by futex(2), and a participant that rings it
// wakes that thread and sends no datagram. It does so for a moment only and alone in its process,
// so one thread is held at most, and whatever goes wrong with a wake (its sender dies or is stopped
// before it) ends with the nap. Then it parks.

// What a nap word says. Its own process changes awake to napping, and anything to awake; others
// napping to rung.
const (
	awake   = iota
	napping // a goroutine sleeps on the word, or is about to
	rung    // and is to do what the doorbell's goroutine does
)

// napTime is how long a nap lasts at most, and so how late who naps may hear of a ring whose sender
// died.
const napTime = 500 * time.Microsecond

// lieDown makes the calling goroutine the napper of the process, if there is none. It looks at its
// condition, sleeps if that is not true, and gets up in any case.
func (d *Domain) lieDown() bool {
	if crashing && controlled() || !d.park.napper.TryLock() {
		return false
	}
	d.parts[d.seat].nap.Store(napping)
	return true
}

// sleep returns when the nap is over, when most has passed, or when ctx ends.
func (d *Domain) sleep(ctx context.Context, most time.Duration) {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end))
	}
	d.park.alarm.set(ctx, d.wakeUp)
	if most > 0 && ctx.Err() == nil { // who ends it after this look finds the nap word that says so
		d.parts[d.seat].nap.sleep(napping, most)
	}
}

// wakeUp ends the nap of whomever, and does nothing in a closed domain, whose nap word may be
// another participant's.
func (d *Domain) wakeUp() {
	if in, err := d.enter(); err == nil {
		d.rouse(d.seat, awake)
		in.unlock()
	}
}

// An alarm calls a function when a context ends. Its users are mostly of one context and one after
// the other, so it stays set.
type alarm struct {
	done <-chan struct{}
	stop func() bool
}

func (a *alarm) set(ctx context.Context, f func()) {
	if ctx.Done() == a.done {
		return
	}
	a.cancel()
	if a.done = ctx.Done(); a.done != nil {
		a.stop = context.AfterFunc(ctx, f)
	}
}

func (a *alarm) cancel() {
	if a.done != nil {
		a.stop()
		a.done = nil
	}
}

// getUp ends the nap and reports whether the process was rung by it, for whichever wait queue.
func (d *Domain) getUp() bool {
	w := &d.parts[d.seat].nap
	heard := !w.CAS(napping, awake) &&
		w.CAS(rung, awake)
	d.park.napper.Unlock()
	if heard {
		d.ringSelf()
	}
	return heard
}

// rouse ends the nap that the participant takes, if it does: its word is to say so from now on.
func (d *Domain) rouse(seat int, say uint64) bool {
	w := &d.parts[seat].nap
	if w.Load() != napping || !w.CAS(napping, say) {
		return false
	}
	w.wake()
	return true
}

// noNaps waits for who naps, and lets nobody nap any more: the word will be another participant's.
func (d *Domain) noNaps() {
	d.rouse(d.seat, awake)
	d.park.napper.Lock()
	d.park.alarm.cancel()
}
