package dist

import (
	"context"
	"sync"
)

// A line is a lock that goroutines have in the order in which they asked for it. The zero line is
// free.
type line struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last in the line has left
}

// A place in a line is had once all before it have left. The zero place is none.
type place struct{ before, done chan struct{} }

// stand takes the next place.
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

// nobody stands before the first.
var nobody = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// first waits until all before p have left, or until ctx ends.
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

// leave lets the next one go on, once all before p have left.
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

// await waits for the place of a call. If ctx ends before, this rank will not come to a turn for
// which the others wait, so all calls end, also those that it has made before this one.
func (g *Group) await(ctx context.Context, p place) {
	if p.first(ctx) != nil {
		g.abort()
		<-p.before
	}
}
