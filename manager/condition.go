package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/wire"
)

func isOwnerDied(err error) bool { return errors.Is(err, ErrOwnerDied) }

// A Condition is a recursive lock in the server on which its owner can wait for somebody to notify
// it. See RLock for what an owner is, and Lock for what happens when it dies.
type Condition struct{ Proxy }

// NewCondition makes a condition whose lock nobody has. The caller closes it.
func NewCondition(ctx context.Context, m *Manager) (*Condition, error) {
	p, err := m.create(ctx, conditionKind)
	return &Condition{p}, err
}

// Lock acquires the lock and waits for it. With ErrOwnerDied the lock is the caller's as well.
func (c *Condition) Lock(ctx context.Context) error { return c.acquire(ctx) }

// TryLock acquires the lock if it is free or this proxy's, and reports whether it was.
func (c *Condition) TryLock(ctx context.Context) (bool, error) { return c.try(ctx) }

// Unlock releases the lock once; ErrNotOwner if this proxy does not have it.
func (c *Condition) Unlock(ctx context.Context) error { return c.release(ctx) }

// MarkConsistent says that what the lock protects is in order again, after ErrOwnerDied.
func (c *Condition) MarkConsistent(ctx context.Context) error { return c.repair(ctx) }

// Wait releases the lock, waits until it is notified, and acquires the lock again as often as it
// was. If ctx ends first, the lock is not the caller's any more.
func (c *Condition) Wait(ctx context.Context) error {
	return c.callUndo(ctx, conditionGiveUp.alone, conditionWait).none()
}

// WaitFor waits until ready, which is called with the lock held, says so.
func (c *Condition) WaitFor(ctx context.Context, ready func() bool) error {
	for !ready() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Notify wakes up to n that wait. The caller has the lock.
func (c *Condition) Notify(ctx context.Context, n int) error {
	return c.call(ctx, conditionNotify, in(n)).none()
}

// NotifyAll wakes all that wait. The caller has the lock.
func (c *Condition) NotifyAll(ctx context.Context) error { return c.Notify(ctx, -1) }

// MarshalWire lets a Condition be part of a value that is sent.
func (c *Condition) MarshalWire(e *wire.Encoder) error { return c.marshal(e, "Condition") }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if it is a proxy of another
// type.
func (c *Condition) UnmarshalWire(d *wire.Decoder) error { return c.unmarshal(d, "Condition") }

// A condition is the state of a Condition. Its waiters are in the order in which they came.
type condition struct {
	lock
	waiters []*waiter
}

type waiter struct {
	depth    int // of the lock before it waited
	notified bool
}

// What can be asked of a Condition.
var (
	conditionKind = newKind("Condition",
		func(*call) (any, error) { return &condition{lock: lock{recursive: true}}, nil })

	// As of a Lock, which its methods name.
	_               = define(conditionKind, lockLock.name, func(s *condition, c *call) error { return s.lock.lock(c) })
	_               = define(conditionKind, lockTryLock.name, (*condition).tryLock)
	_               = define(conditionKind, lockUnlock.name, (*condition).unlock)
	_               = define(conditionKind, lockRepair.name, (*condition).repair)
	conditionWait   = define(conditionKind, "wait", (*condition).wait)
	conditionNotify = define(conditionKind, "notify", (*condition).notify)
	conditionGiveUp = define(conditionKind, "abandon", (*condition).giveUp)
)

func (s *condition) wait(c *call) error {
	w, _ := c.arrived.(*waiter)
	if w == nil {
		if s.depth == 0 || s.owner != c.owner() {
			return fmt.Errorf("wait: %w", ErrNotOwner)
		}
		w = &waiter{depth: s.depth}
		c.arrived, c.abandon = w, func() { s.forget(w) }
		s.waiters = append(s.waiters, w)
		s.owner, s.depth = owner{}, 0
		if s.dead != nil {
			s.lost = true // it was not marked consistent
		}
		c.obj.changed.fire() // the lock is free
		return errWait
	}
	if !w.notified {
		return errWait
	}
	err := s.lock.lock(c)
	if err == errWait {
		return err
	}
	s.forget(w)
	if s.depth > 0 && s.owner == c.owner() {
		s.depth = w.depth
	}
	return err
}

func (s *condition) forget(w *waiter) {
	for i, x := range s.waiters {
		if x == w {
			s.waiters = append(s.waiters[:i:i], s.waiters[i+1:]...)
			return
		}
	}
}

func (s *condition) notify(c *call) error {
	if s.depth == 0 || s.owner != c.owner() {
		return fmt.Errorf("notify: %w", ErrNotOwner)
	}
	n, err := arg[int](c, 0)
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

// giveUp takes the lock from a caller that was woken too late.
func (s *condition) giveUp(c *call) error {
	if s.depth > 0 && s.owner == c.owner() {
		s.depth = 1
		return s.unlock(c)
	}
	return nil
}
