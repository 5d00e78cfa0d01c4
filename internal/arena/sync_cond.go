package arena

import (
	"context"
	"time"
)

// A Cond lets participants let go of a Mutex and wait until another one notifies them. Each
// participant has a word of two numbers: tickets that its goroutines took, and how many of them
// were served. Its share counts those that wait.
//
// A notification that went to a dead waiter is not lost: a participant that finds a waiter gone
// serves everybody, and a waiter sees the death of the Mutex's holder.
type Cond struct{ *Sync }

const (
	ticketShift = 32
	allTickets  = 1 << 31
)

// relockTime is for how long after the end of its context a Wait tries to lock the Mutex again,
// whose holder may be stopped.
const relockTime = time.Second

// Wait unlocks m, waits for a notification or until ctx ends, and locks m again. The last step may
// take a second after the end of ctx. It may return nil without a notification, so the caller looks
// at its condition again. Where m could not be locked again, held is false.
func (c Cond) Wait(ctx context.Context, m Mutex) (held bool, err error) {
	if !m.holds() {
		return false, ErrNotOwner
	}
	if c.bereft() {
		c.serveAll()
	}
	if !c.share() {
		return true, ErrLocked
	}
	t := c.arrive()
	if err := m.Unlock(); err != nil {
		c.forgo()
		c.unshare()
		return false, err
	}
	served := func() bool { return int32(uint32(c.c.tickets[c.d.seat].Load())-t) > 0 }
	// The death of m's holder counts as well: it may have been notified, and have given up its
	// share.
	err = c.watch(ctx, func() bool { return served() || c.bereft() || m.troubled() })
	if c.bereft() {
		c.serveAll()
	}
	if served() {
		err = nil
	} else if !c.d.closed.Load() {
		c.forgo()
	}
	e := c.relock(ctx, m)
	if e != nil {
		err = e
	}
	if !c.d.closed.Load() {
		c.unshare() // not before: a waiter that dies until then takes a notification with it
	}
	return got(e), err
}

// relock locks m until a second after the end of ctx.
func (c Cond) relock(ctx context.Context, m Mutex) error {
	if err := m.TryLock(); err != ErrLocked {
		return err
	}
	more, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if !(crashing && controlled()) { // there is no time
			time.AfterFunc(relockTime, func() { cancel(context.Cause(ctx)) })
		}
	})()
	return m.Lock(more)
}

// Notify wakes n of the waiters, and returns how many it found. It need not hold the Mutex.
func (c Cond) Notify(n int) (woken int) {
	if c.bereft() {
		c.serveAll()
	}
	for i := range c.seats() {
		if woken == n {
			break
		}
		seat := (c.d.seat + 1 + i) % c.seats()
		if k := c.serve(seat, n-woken); k > 0 {
			woken += k
			c.wake(seat)
		}
	}
	return woken
}

// forgo serves all waiters of this participant: the ticket of one that gives up must not be served
// in the place of another one's.
func (c Cond) forgo() {
	c.serve(c.d.seat, allTickets)
	c.d.park.wakeup()
}

// arrive takes a ticket.
func (c Cond) arrive() uint32 {
	return uint32(c.c.tickets[c.d.seat].Add(1<<ticketShift)>>ticketShift) - 1
}

// serve serves up to n tickets of a participant and returns how many.
func (c Cond) serve(seat, n int) int {
	w := &c.c.tickets[seat]
	for {
		v := w.Load()
		served := uint32(v)
		k := min(n, int(uint32(v>>ticketShift)-served))
		if k <= 0 || w.CAS(v, v>>ticketShift<<ticketShift|uint64(served+uint32(k))) {
			return max(k, 0)
		}
	}
}

// serveAll serves everybody and then forgets the waiters that are gone.
func (c Cond) serveAll() {
	for i := range c.seats() {
		c.serve(i, allTickets)
	}
	c.d.wakeBits(&c.c.watching)
	c.sharesOfDead(func(i int, v uint64) bool {
		c.c.shares[i].CAS(v, v&idMask)
		return true
	})
}

// wake wakes a participant if it is parked here.
func (c Cond) wake(seat int) {
	w, bit := &c.c.watching[seat/64], uint64(1)<<(seat%64)
	if w.Load()&bit != 0 {
		w.AndNot(bit)
		c.d.wakeSeat(seat)
	}
}
