package manager

import (
	"context"
	"fmt"
)

// A Cond is a condition variable with a recursive lock in the server. See [RecursiveMutex] for the
// meaning of its owner, and [Mutex] for the death of the owner.
type Cond struct{ locker[Cond] }

// NewCond creates a Cond with an unlocked lock. The caller must close it.
func NewCond(ctx context.Context, m *Manager) (*Cond, error) {
	p, err := createTyped[Cond](ctx, m, condKind)
	return &Cond{locker[Cond]{p}}, err
}

// Wait releases the lock, which the caller must hold, blocks until a notification arrives, and
// acquires the lock again to the previous depth. It returns [ErrNotOwner] if the caller does not
// hold the lock. If ctx is done first, Wait returns an error that wraps its cause, and the
// caller does not hold the lock. With [ErrOwnerDied] the caller holds the lock, as after Lock.
// The caller should check its condition in a loop; see [Cond.WaitFor].
func (c *Cond) Wait(ctx context.Context) error {
	return c.callUndo(ctx, condGiveUp.bareRequest, condWait).noResult()
}

// WaitFor blocks until ready returns true, and then returns nil with the lock held. The errors
// are the same as for [Cond.Wait]. The caller must hold the lock. WaitFor calls ready first and
// after each notification, with the lock held.
func (c *Cond) WaitFor(ctx context.Context, ready func() bool) error {
	for !ready() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Notify wakes up to n waiting callers. It returns [ErrNotOwner] if the caller does not hold the
// lock. If n is negative, it wakes all.
func (c *Cond) Notify(ctx context.Context, n int) error {
	return c.call(ctx, condNotify, encodeArg(n)).noResult()
}

// NotifyAll wakes all waiting callers. It returns [ErrNotOwner] if the caller does not hold the
// lock.
func (c *Cond) NotifyAll(ctx context.Context) error { return c.Notify(ctx, -1) }

// A cond is the server's state of a Cond. Its waiters are in order of arrival.
type cond struct {
	mutex
	waiters []*waiter
}

type waiter struct {
	depth    int // depth of the lock before the wait
	notified bool
}

// Methods of a Cond.
var (
	condKind = newKind("Cond",
		func(*call) (any, error) { return &cond{mutex: mutex{recursive: true}}, nil })

	// The methods of a Mutex, which the locker calls by name.
	_          = defineMethod(condKind, mutexLock.name, func(s *cond, c *call) error { return s.mutex.lock(c) })
	_          = defineMethod(condKind, mutexTryLock.name, (*cond).tryLock)
	_          = defineMethod(condKind, mutexUnlock.name, (*cond).unlock)
	_          = defineMethod(condKind, mutexGiveBack.name, (*cond).releaseAbandoned)
	_          = defineMethod(condKind, mutexRepair.name, (*cond).markConsistent)
	condWait   = defineMethod(condKind, "wait", (*cond).wait)
	condNotify = defineMethod(condKind, "notify", (*cond).notify)
	condGiveUp = defineMethod(condKind, "abandon", (*cond).releaseWoken)
)

func (s *cond) wait(c *call) error {
	w, _ := c.arrived.(*waiter)
	if w == nil {
		if s.depth == 0 || s.owner != c.owner() {
			return fmt.Errorf("wait: %w", ErrNotOwner)
		}
		w = &waiter{depth: s.depth}
		c.arrived, c.abandon = w, func() { s.removeWaiter(w) }
		s.waiters = append(s.waiters, w)
		s.owner, s.depth = owner{}, 0
		if s.dead != nil {
			s.lost = true // released without MarkConsistent
		}
		c.obj.changed.broadcast() // the lock is free
		return errWait
	}
	if !w.notified {
		return errWait
	}
	err := s.mutex.lock(c)
	if err == errWait {
		return err
	}
	s.removeWaiter(w)
	if s.depth > 0 && s.owner == c.owner() {
		s.depth = w.depth
	}
	return err
}

func (s *cond) removeWaiter(w *waiter) {
	for i, x := range s.waiters {
		if x == w {
			s.waiters = append(s.waiters[:i:i], s.waiters[i+1:]...)
			return
		}
	}
}

func (s *cond) notify(c *call) error {
	if s.depth == 0 || s.owner != c.owner() {
		return fmt.Errorf("notify: %w", ErrNotOwner)
	}
	n, err := decodeArg[int](c, 0)
	if err != nil {
		return err
	}
	for _, w := range s.waiters {
		if n != 0 && !w.notified {
			w.notified = true
			n--
		}
	}
	return nil
}

// releaseWoken releases the lock on behalf of a caller of wait that stopped waiting after it was
// woken, and so does not know that it holds the lock. It does nothing if the caller does not
// hold the lock.
func (s *cond) releaseWoken(c *call) error {
	if s.depth > 0 && s.owner == c.owner() {
		s.depth = 1
		return s.releaseAbandoned(c)
	}
	return nil
}
