package manager

import "sync"

// A signal wakes everybody who waits for something to change.
type signal struct{ ch chan struct{} }

// wait returns a channel that the next fire closes.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// A gate lets any number of calls in, or those of one transaction.
type gate struct {
	mu      sync.Mutex
	txn     *txn // whose turn it is, or who waits for the last ones to leave
	inside  int  // calls of others
	changed signal
}

// enter lets a call in. Each needs a leave, unless there is an error.
func (g *gate) enter(c *call) error {
	for {
		g.mu.Lock()
		if g.txn == nil {
			g.inside++
			g.mu.Unlock()
			return nil
		}
		if g.txn == c.lane.txn {
			g.mu.Unlock()
			return nil
		}
		changed := g.changed.wait()
		g.mu.Unlock()
		if err := c.await(changed); err != nil {
			return err
		}
	}
}

func (g *gate) leave(c *call) {
	if c.lane.txn != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 {
		g.changed.fire()
	}
}

// begin keeps everybody out but t. First it takes the turn, so that a stream of calls cannot keep
// it waiting.
func (g *gate) begin(c *call, t *txn) error {
	for taken := false; ; {
		g.mu.Lock()
		if g.txn == nil {
			g.txn, taken = t, true
		}
		if taken && g.inside == 0 {
			g.mu.Unlock()
			return nil
		}
		changed := g.changed.wait()
		g.mu.Unlock()
		if err := c.await(changed); err != nil {
			if taken {
				g.end()
			}
			return err
		}
	}
}

func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.txn = nil
	g.changed.fire()
}
