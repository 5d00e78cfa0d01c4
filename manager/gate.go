package manager

import "sync"

// A signal wakes all goroutines that wait for a change.
type signal struct{ ch chan struct{} }

// changeChan returns a channel that is closed by the next fire.
func (s *signal) changeChan() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// A gate admits either any number of calls outside of transactions, or the calls of one
// transaction.
type gate struct {
	mu      sync.Mutex
	txn     *txn // current transaction, which may still wait for inside to become 0
	inside  int  // number of calls outside of transactions
	changed signal
}

// admitCall admits a call. The caller must call leave unless it returns an error.
func (g *gate) admitCall(c *call) error {
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
		changed := g.changed.changeChan()
		g.mu.Unlock()
		if err := c.awaitChange(changed); err != nil {
			return err
		}
	}
}

func (g *gate) endCall(c *call) {
	if c.lane.txn != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 {
		g.changed.broadcast()
	}
}

// lockExclusive excludes all calls except calls of t. It claims the gate first and then waits for
// the admitted calls, so that a stream of new calls cannot starve it.
func (g *gate) lockExclusive(c *call, t *txn) error {
	for taken := false; ; {
		g.mu.Lock()
		if g.txn == nil {
			g.txn, taken = t, true
		}
		if taken && g.inside == 0 {
			g.mu.Unlock()
			return nil
		}
		changed := g.changed.changeChan()
		g.mu.Unlock()
		if err := c.awaitChange(changed); err != nil {
			if taken {
				g.unlockExclusive()
			}
			return err
		}
	}
}

func (g *gate) unlockExclusive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.txn = nil
	g.changed.broadcast()
}
