package dist

import (
	"context"
	"sync"
)

// A line is a fair lock: goroutines acquire it in FIFO order. The zero line is unlocked.
type line struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last ticket is released
}

// A place is a ticket for a line. It holds the lock once all earlier tickets are released. The zero
// place is no ticket, and releasing it is a no-op.
type place struct{ before, done chan struct{} }

// stand takes the next ticket. The caller must release it with leave, even if it never acquired the
// lock.
func (l *line) stand() place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := place{l.last, make(chan struct{})}
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

// first blocks until p holds the lock. It returns the cause of ctx if ctx ends first.
func (p place) first(ctx context.Context) error {
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

// leave releases the ticket. If p does not hold the lock yet, the release takes effect once all
// earlier tickets are released.
func (p place) leave() {
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

// await blocks until p holds the lock. If ctx ends first, this rank cannot take part in turns for
// which other ranks wait. await then aborts the calls of all ranks, including its own earlier ones,
// and still acquires the lock.
func (g *Group) await(ctx context.Context, p place) {
	if p.first(ctx) != nil {
		g.abort()
		<-p.before
	}
}
