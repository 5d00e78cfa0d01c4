package arena

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Cond is a condition variable: its waiters unlock a [Mutex] and wait until another participant
// notifies them. A participant's ticket word has two counters: tickets taken by its goroutines, and
// tickets served. Its share counts its waiting goroutines.
//
// The death of a notified waiter does not lose the notification: a participant that finds the share
// of a dead waiter serves all tickets. A waiter also stops when the holder of the Mutex dies.
type Cond struct{ *Sync }

const (
	ticketShift = 32
	allTickets  = 1 << 31
)

// relockTime is how long [Cond.Wait] keeps trying to lock the Mutex after the end of its context.
// The holder may be stopped, so the attempt must be bounded.
const relockTime = time.Second

// Wait unlocks m, blocks until it is notified or ctx ends, and locks m again. It may return nil
// without a notification, so the caller must test its condition again.
//
// The caller must hold m; otherwise Wait returns [ErrNotOwner]. held reports whether the caller
// holds m when Wait returns. It is false if m could not be locked again within a second after
// the end of ctx. An error that wraps [ErrOwnerDied] comes with held true, as with [Mutex.Lock].
// If 2^20-1 goroutines of this participant wait already, Wait returns [ErrLocked] and leaves m
// locked.
func (c Cond) Wait(ctx context.Context, m Mutex) (held bool, err error) {
	if !m.isHolder() {
		return false, ErrNotOwner
	}
	if c.hasDeadShare() {
		c.serveAllTickets()
	}
	if !c.addShare() {
		return true, ErrLocked
	}
	t := c.takeTicket()
	if err := m.Unlock(); err != nil {
		c.forfeitTickets()
		c.dropShare()
		return false, err
	}
	served := func() bool { return int32(uint32(c.c.Tickets[c.d.seat].Load())-t) > 0 }
	// The death of m's holder also ends the wait: it may have been notified, and may have cleared
	// its share before it died.
	err = c.watchUntil(ctx, func() bool { return served() || c.hasDeadShare() || m.isInconsistent() })
	if c.hasDeadShare() {
		c.serveAllTickets()
	}
	if served() {
		err = nil
	} else if !c.d.closed.Load() {
		c.forfeitTickets()
	}
	e := c.relockMutex(ctx, m)
	if e != nil {
		err = e
	}
	if !c.d.closed.Load() {
		// Not before relock: if this participant dies before, the share must stay behind, so that
		// the others learn that a notification may be lost.
		c.dropShare()
	}
	return isAcquired(e), err
}

// relockMutex locks m, with the results of [Mutex.Lock]. It gives up [relockTime] after the end
// of ctx, with the cause of ctx.
func (c Cond) relockMutex(ctx context.Context, m Mutex) error {
	if err := m.TryLock(); err != ErrLocked {
		return err
	}
	more, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if !(word.Crashing && word.IsControlled()) { // controlled schedules have no clock
			time.AfterFunc(relockTime, func() { cancel(context.Cause(ctx)) })
		}
	})()
	return m.Lock(more)
}

// Notify wakes up to n waiters and returns the number woken. The caller may hold the Mutex, but
// need not.
func (c Cond) Notify(n int) (woken int) {
	if c.hasDeadShare() {
		c.serveAllTickets()
	}
	for i := range c.d.mem.CountSeats() {
		if woken == n {
			break
		}
		seat := (c.d.seat + 1 + i) % c.d.mem.CountSeats()
		if k := c.serveTickets(seat, n-woken); k > 0 {
			woken += k
			c.wakeWatcher(seat)
		}
	}
	return woken
}

// forfeitTickets serves all tickets of this participant, for a waiter that gives up: its ticket
// must not be served in place of another waiter's. The participant's other waiters wake spuriously.
func (c Cond) forfeitTickets() {
	c.serveTickets(c.d.seat, allTickets)
	c.d.park.HandleTopic(c.d.park.TopicOf(&c.c.Watching))
}

// takeTicket takes a ticket of this participant and returns its number.
func (c Cond) takeTicket() uint32 {
	return uint32(c.c.Tickets[c.d.seat].Add(1<<ticketShift)>>ticketShift) - 1
}

// serveTickets serves up to n tickets of the participant in a seat and returns the number
// served. The caller must then wake that participant.
func (c Cond) serveTickets(seat, n int) int {
	w := &c.c.Tickets[seat]
	for {
		v := w.Load()
		served := uint32(v)
		k := min(n, int(uint32(v>>ticketShift)-served))
		if k <= 0 || w.CAS(v, v>>ticketShift<<ticketShift|uint64(served+uint32(k))) {
			return max(k, 0)
		}
	}
}

// serveAllTickets serves all tickets of all participants and then clears the shares of dead
// participants, in this order: a share must stay until every waiter that might have missed a
// notification has been woken.
func (c Cond) serveAllTickets() {
	for i := range c.d.mem.CountSeats() {
		c.serveTickets(i, allTickets)
	}
	c.d.park.WakeBits(&c.c.Watching)
	c.forEachDeadShare(func(i int, v uint64) bool {
		c.c.Shares[i].CAS(v, v&word.IdentityMask)
		return true
	})
}

// wakeWatcher wakes the participant in a seat if its bit in the watching bitmap is set.
func (c Cond) wakeWatcher(seat int) {
	w, bit := &c.c.Watching[seat/64], uint64(1)<<(seat%64)
	if w.Load()&bit != 0 {
		w.AndNot(bit)
		c.d.park.WakeSeat(seat, c.d.park.TopicOf(&c.c.Watching))
	}
}
