package arena

import (
	"context"
	"time"
)

// Note [Naps] To wake a goroutine that is parked takes a datagram, Go's poller, a read and two
// switches of goroutines. A goroutine that has spun in vain therefore first takes a nap: it sleeps
// with its thread on the nap word of its participant, by futex(2), and a participant that wakes it
// sends no datagram. One goroutine of a process naps at a time and for a moment only, so one thread
// is held at most. A wake that is late, since its sender died or was stopped before it, costs the
// rest of the nap. Then the goroutine parks.

// The values of a nap word. Its own process changes awake to napping, and any value to awake.
// Other processes change napping to roused.
const (
	awake   = iota
	napping // a goroutine sleeps on the word, or is about to
	roused  // the sleeper is to do what the doorbell's goroutine does
)

// napTime is how long a nap lasts at most. So much later may a napper hear of a wake whose sender
// died before it.
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
	if most > 0 && ctx.Err() == nil { // a context that ends after this look finds the word napping
		d.parts[d.seat].nap.sleep(napping, most)
	}
}

// wakeUp ends the nap that a goroutine of this process takes, if one does. In a closed domain it
// does nothing, since the nap word may be another participant's.
func (d *Domain) wakeUp() {
	if in, err := d.enter(); err == nil {
		d.rouse(d.seat, awake)
		d.park.wakeBarrier()
		in.unlock()
	}
}

// An alarm calls a function when a context ends. Nappers come one after the other and mostly with
// the same context, so the alarm stays set between them.
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

// getUp ends the nap and reports whether another process woke this one by it, for whichever wait
// queue.
func (d *Domain) getUp() bool {
	w := &d.parts[d.seat].nap
	heard := !w.CAS(napping, awake) &&
		w.CAS(roused, awake)
	d.park.napper.Unlock()
	if heard {
		d.wakeSelf()
	}
	return heard
}

// rouse ends the nap that a participant takes, and sets its nap word to now. It reports whether the
// participant napped.
func (d *Domain) rouse(seat int, now uint64) bool {
	w := &d.parts[seat].nap
	if w.Load() != napping || !w.CAS(napping, now) {
		return false
	}
	w.wake()
	return true
}

// noNaps ends the nap that is taken and allows no other one: the nap word will be another
// participant's.
func (d *Domain) noNaps() {
	d.rouse(d.seat, awake)
	d.park.wakeBarrier()
	d.park.napper.Lock()
	d.park.alarm.cancel()
}
