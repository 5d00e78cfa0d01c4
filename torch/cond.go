package torch

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Conditions] A multiprocessing.Condition consists of four semaphores: its lock, the number
// of sleepers, the number of sleepers that were woken or gave up, and the semaphore that they sleep
// on. A notifier must wait until the processes that it wakes have counted themselves as woken,
// because the next notifier could not tell otherwise which ones are asleep. See
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/synchronize.py.

// A Cond is a multiprocessing.Condition together with its lock: in memory that its processes share,
// or in a manager's server, where it belongs to one [Proxy.Thread]. Its methods may be called from
// several goroutines. The lock must be held by the caller of Wait, Notify and NotifyAll.
type Cond interface {
	Semaphore
	// Wait releases the lock and blocks until another process notifies or ctx is done. It then
	// acquires the lock again in either case, however long that takes. If ctx is done it returns
	// [context.Cause]. In a manager's server, Wait returns after a tenth of a second at the latest.
	// The caller must therefore check its condition in a loop.
	Wait(ctx context.Context) error
	// Notify wakes up to n waiting processes and blocks until they are awake or ctx is done. It
	// never sees a process awake that was killed in its sleep, so ctx should have a deadline.
	Notify(ctx context.Context, n int) error
	// NotifyAll wakes all waiting processes and blocks like [Cond.Notify].
	NotifyAll(ctx context.Context) error
}

// A condition is a [Cond] in memory that processes share: see Note [Conditions]. newCondition
// creates one, and decodeCondition opens one of another process.
type condition struct {
	*semaphore // the lock, of class Lock or RLock

	sleeping, woken, wake *semaphore
}

var (
	conditionClass = named("multiprocessing.synchronize.Condition")
	eventClass     = named("multiprocessing.synchronize.Event")
)

// NewCond creates a Condition to be passed to [Spawn]. lock must be nil or a result of [NewLock] or
// [NewRLock]; otherwise the error wraps [ErrUnsupported]. If lock is nil, the Condition gets an
// RLock of its own. Closing the Condition closes the lock. The caller must close it after the
// processes that use it have ended.
func NewCond(lock Semaphore) (Cond, error) {
	var own *semaphore
	var err error
	if lock == nil {
		own, err = newSemaphore(rlockClass, 1, 1)
	} else if at, ok := lock.(*semaphore); ok {
		own = at
	} else {
		err = unsupported("lock of a Condition is %T, want a Lock or RLock of this package", lock)
	}
	if err != nil {
		return nil, err
	}
	c, err := newCondition(own)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newCondition creates a condition, which then owns lock. The caller must close it. On an error,
// newCondition closes lock.
func newCondition(lock *semaphore) (_ *condition, err error) {
	c := &condition{semaphore: lock}
	for _, s := range []**semaphore{&c.sleeping, &c.woken, &c.wake} {
		if *s, err = newSemaphore(semaphoreClass, 0, maxPermits); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *condition) Wait(ctx context.Context) error {
	if err := errors.Join(c.sleeping.Release(), c.semaphore.Release()); err != nil {
		return err
	}
	err := c.wake.Acquire(ctx)
	return errors.Join(err, c.woken.Release(), c.semaphore.Acquire(context.WithoutCancel(ctx)))
}

func (c *condition) Notify(ctx context.Context, n int) error {
	for c.woken.tryAcquire() { // clear the counts of sleepers that gave up
		c.sleeping.tryAcquire()
	}
	woken := 0
	for ; woken < n && c.sleeping.tryAcquire(); woken++ {
		if err := c.wake.Release(); err != nil {
			return err
		}
	}
	for range woken {
		if err := c.woken.Acquire(ctx); err != nil {
			return err
		}
	}
	for woken > 0 && c.wake.tryAcquire() { // take back wake-ups of sleepers that gave up meanwhile
	}
	return nil
}

func (c *condition) NotifyAll(ctx context.Context) error { return c.Notify(ctx, maxPermits) }

func (c *condition) Close() (err error) {
	for _, s := range []*semaphore{c.semaphore, c.sleeping, c.woken, c.wake} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// decodeCondition decodes the state (lock, sleeping, woken, wake) of a multiprocessing.Condition
// to a *condition.
func (i *importer) decodeCondition(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	if len(state) != 4 {
		return nil, protocolError("state of %s has %d parts, want 4", o.Class, len(state))
	}
	c := new(condition)
	for n, dst := range []**semaphore{&c.semaphore, &c.sleeping, &c.woken, &c.wake} {
		v, err := i.Lift(state[n])
		if err != nil {
			return nil, err
		}
		s, ok := v.(*semaphore)
		if !ok {
			return nil, protocolError("part %d of a Condition is %T, want a semaphore", n, v)
		}
		*dst = s
	}
	return c, nil
}

func (e *exporter) encodeCondition(c *condition) (any, error) {
	state := python.Tuple{}
	for _, s := range []*semaphore{c.semaphore, c.sleeping, c.woken, c.wake} {
		low, err := e.Lower(s)
		if err != nil {
			return nil, err
		}
		state = append(state, low)
	}
	return newInstance(conditionClass, state), nil
}
