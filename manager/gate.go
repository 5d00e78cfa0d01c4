package manager

import "sync"

// A signal wakes all goroutines that wait for a change. It has no lock of its own: the mutex of
// the object or gate that it belongs to must be held for each method.
type signal struct{ ch chan struct{} }

// changeChan returns a channel that is closed by the next broadcast. A waiting goroutine must
// get it before it releases the mutex.
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
// transaction. There is one per server.
type gate struct {
	mu      sync.Mutex
	txn     *txn // current transaction, which may still wait for inside to become 0
	inside  int  // number of calls outside of transactions
	changed signal
}

// admitCall blocks until no other transaction is in progress, and admits the call. The caller
// must call endCall unless admitCall returns an error. It returns the cause if the call is
// canceled or its client is gone.
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

// lockExclusive blocks until it has excluded all calls except calls of t. The caller must call
// unlockExclusive unless it returns an error, which is the cause if call c is canceled or its
// client is gone. It claims the gate first and then waits for the admitted calls, so that a
// stream of new calls cannot starve it.
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
