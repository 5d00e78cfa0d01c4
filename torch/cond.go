package torch

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Conditions] multiprocessing's Condition is four semaphores: its lock, the number of
// sleepers, the number of sleepers that were woken or gave up, and the semaphore that they sleep
// on. A notifier waits until the processes that it wakes have said so. Otherwise the next notifier
// would not know which processes are asleep.

// A Cond is multiprocessing's Condition, with its lock. It is in memory that its processes share,
// or at a manager's server, where it belongs to one [Proxy.Thread]. Its methods may be called by
// several goroutines. A caller of Wait, Notify or NotifyAll has acquired the lock.
type Cond interface {
	Semaphore
	// Wait releases the lock, and waits until another process notifies or ctx is done. Then it
	// acquires the lock again in any case, however long that takes. The error is the cause of ctx's
	// end. At a manager's server Wait returns after a tenth of a second at the latest. So the
	// caller checks its condition in a loop.
	Wait(ctx context.Context) error
	// Notify wakes up to n of the waiting processes, and waits until they have woken or ctx is
	// done. A process that was killed while it slept never wakes.
	Notify(ctx context.Context, n int) error
	// NotifyAll wakes all waiting processes, and waits as Notify does.
	NotifyAll(ctx context.Context) error
}

// A condition is in memory that processes share: see Note [Conditions].
type condition struct {
	*semaphore // the lock, of class Lock or RLock

	sleeping, woken, wake *semaphore
}

var (
	conditionClass = named("multiprocessing.synchronize.Condition")
	eventClass     = named("multiprocessing.synchronize.Event")
)

// NewCond makes a Condition for processes of Python: pass it to Spawn. It uses a lock of NewLock or
// NewRLock, which closes with it, or an RLock of its own if lock is nil. The error wraps
// ErrUnsupported for a lock of a manager's. The caller closes the Cond when those processes are at
// their end.
func NewCond(lock Semaphore) (Cond, error) {
	var own *semaphore
	var err error
	if lock == nil {
		own, err = newSemaphore(rlockClass, 1, 1)
	} else if at, ok := lock.(*semaphore); ok {
		own = at
	} else {
		err = unsupported("a Condition of this process on %T", lock)
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

// newCondition makes a condition, which closes its lock, also on an error.
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
	for c.woken.take() { // of sleepers that gave up
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
	for woken > 0 && c.wake.take() { // meant for a sleeper that gave up just now
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

// condition reads the state (lock, sleeping, woken, wake).
func (i *importer) condition(o *pickle.Object) (any, error) {
	state, _ := o.State.(python.Tuple)
	if len(state) != 4 {
		return nil, protocolError("the state of %s has %d parts", o.Class, len(state))
	}
	c := new(condition)
	for n, dst := range []**semaphore{&c.semaphore, &c.sleeping, &c.woken, &c.wake} {
		v, err := i.Lift(state[n])
		if err != nil {
			return nil, err
		}
		s, ok := v.(*semaphore)
		if !ok {
			return nil, protocolError("part %d of a Condition is %T", n, v)
		}
		*dst = s
	}
	return c, nil
}

func (e *exporter) condition(c *condition) (any, error) {
	state := python.Tuple{}
	for _, s := range []*semaphore{c.semaphore, c.sleeping, c.woken, c.wake} {
		low, err := e.Lower(s)
		if err != nil {
			return nil, err
		}
		state = append(state, low)
	}
	return withState(conditionClass, state), nil
}
