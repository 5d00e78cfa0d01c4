package torch

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Conditions] multiprocessing's Condition is four semaphores: its lock, how many sleep, how
// many of them were woken or gave up, and what they sleep on. A notifier waits until those whom it
// wakes have said so, else it would not know whom the next one finds asleep.

// A Cond is multiprocessing's Condition. Its methods may be called by several goroutines.
type Cond struct {
	// Lock is a Lock or RLock, which whoever calls Wait or Notify has acquired.
	Lock *Semaphore

	sleeping, woken, wake *Semaphore
}

var (
	conditionClass = named("multiprocessing.synchronize.Condition")
	eventClass     = named("multiprocessing.synchronize.Event")
)

// NewCond makes a Condition of Python's on a lock, which closes with it, or on an RLock of its own
// where that is nil; see NewLock.
func NewCond(lock *Semaphore) (_ *Cond, err error) {
	c := &Cond{Lock: lock}
	if lock == nil {
		if c.Lock, err = NewRLock(); err != nil {
			return nil, err
		}
	}
	for _, s := range []**Semaphore{&c.sleeping, &c.woken, &c.wake} {
		if *s, err = NewSemaphore(0); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// Wait releases the lock, waits until it is notified or ctx is done, and acquires the lock again in
// any case, however long that takes. The error is the cause of ctx's end.
func (c *Cond) Wait(ctx context.Context) error {
	if err := errors.Join(c.sleeping.Release(), c.Lock.Release()); err != nil {
		return err
	}
	err := c.wake.Acquire(ctx)
	return errors.Join(err, c.woken.Release(), c.Lock.Acquire(context.WithoutCancel(ctx)))
}

// Notify wakes up to n of those who wait, and waits until they have woken or ctx is done: a process
// that was killed while it slept never does.
func (c *Cond) Notify(ctx context.Context, n int) error {
	for c.woken.take() { // of those who gave up
		c.sleeping.take()
	}
	woken := 0
	for ; woken < n && c.sleeping.take(); woken++ {
		if err := c.wake.Release(); err != nil {
			return err
		}
	}
	for range woken {
		if err := c.woken.Acquire(ctx); err != nil {
			return err
		}
	}
	for woken > 0 && c.wake.take() { // what was meant for one who gave up just now
	}
	return nil
}

// NotifyAll wakes all who wait; see Notify.
func (c *Cond) NotifyAll(ctx context.Context) error { return c.Notify(ctx, maxPermits) }

// Close removes the names of what this process has made; see Semaphore.Close.
func (c *Cond) Close() (err error) {
	for _, s := range []*Semaphore{c.Lock, c.sleeping, c.woken, c.wake} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// condition reads the state (lock, sleeping, woken, wake).
func (i *importer) condition(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	if len(state) != 4 {
		return nil, protocolError("the state of %s has %d parts", o.Class, len(state))
	}
	c := new(Cond)
	for n, dst := range []**Semaphore{&c.Lock, &c.sleeping, &c.woken, &c.wake} {
		v, err := i.Lift(state[n])
		if err != nil {
			return nil, err
		}
		s, ok := v.(*Semaphore)
		if !ok {
			return nil, protocolError("part %d of a Condition is %T", n, v)
		}
		*dst = s
	}
	return c, nil
}

func (e *exporter) condition(c *Cond) (any, error) {
	state := python.Tuple{}
	for _, s := range []*Semaphore{c.Lock, c.sleeping, c.woken, c.wake} {
		low, err := e.Lower(s)
		if err != nil {
			return nil, err
		}
		state = append(state, low)
	}
	return withState(conditionClass, state), nil
}
