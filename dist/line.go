package dist

import (
	"context"
	"sync"
)

// A ticketLock is a fair lock: goroutines acquire it in FIFO order. The zero ticketLock is
// unlocked.
type ticketLock struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last ticket is released
}

// A ticket is a place in the queue of a ticketLock. It holds the lock once all earlier tickets are
// released. The zero ticket is none, and releasing it is a no-op.
type ticket struct{ before, done chan struct{} }

// takeTicket takes the next ticket. The caller must release it with release, even if it never
// acquired the lock.
func (l *ticketLock) takeTicket() ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := ticket{l.last, make(chan struct{})}
	if p.before == nil {
		p.before = nobody
	}
	l.last = p.done
	return p
}

// nobody is the closed channel that precedes the first ticket.
var nobody = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// awaitLock blocks until p holds the lock. It returns the cause of ctx if ctx ends first.
func (p ticket) awaitLock(ctx context.Context) error {
	select {
	case <-p.before:
		return nil
	default:
	}
	select {
	case <-p.before:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release releases the ticket. If p does not hold the lock yet, the release takes effect once all
// earlier tickets are released.
func (p ticket) release() {
	if p.done == nil {
		return
	}
	select {
	case <-p.before:
		close(p.done)
	default:
		go func() {
			<-p.before
			close(p.done)
		}()
	}
}

// acquireLock blocks until p holds the lock. If ctx ends first, this rank cannot take part in turns
// that other ranks wait for. acquireLock then aborts the calls of all ranks, including its own
// earlier ones, and still acquires the lock; the next turn returns the error.
func (g *Group) acquireLock(ctx context.Context, p ticket) {
	if p.awaitLock(ctx) != nil {
		g.abortCalls()
		<-p.before
	}
}
