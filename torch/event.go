package torch

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// An Event is a multiprocessing.Event: in memory that its processes share, or in a manager's
// server. Its methods may be called from several goroutines.
type Event interface {
	// IsSet reports whether the event is set. Like all methods it acquires the event's lock,
	// because Python's is_set decrements the flag for a moment:
	// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/synchronize.py.
	IsSet(ctx context.Context) (bool, error)
	// Set sets the event and wakes all waiters.
	Set(ctx context.Context) error
	// Clear resets the event.
	Clear(ctx context.Context) error
	// Wait blocks until the event is set. If ctx is done first, it returns [context.Cause].
	Wait(ctx context.Context) error
	// Close removes the names of an event that this process created, so that no further process can
	// open it. For a manager's event it closes the proxy. Close is idempotent.
	Close() error
}

// An event is an [Event] in memory that processes share: a condition and a semaphore that is 1
// while the event is set, as in
// https://github.com/python/cpython/blob/v3.13.0/Lib/multiprocessing/synchronize.py. [NewEvent]
// creates one, and decodeEvent opens one of another process.
type event struct {
	cond *condition
	flag *semaphore
}

// NewEvent creates an [Event] that is not set, to be passed to [Spawn]. The caller must close it
// after the processes that use it have ended.
func NewEvent() (Event, error) {
	lock, err := newSemaphore(lockClass, 1, 1)
	if err != nil {
		return nil, err
	}
	e := new(event)
	if e.cond, err = newCondition(lock); err != nil {
		return nil, err
	}
	if e.flag, err = newSemaphore(semaphoreClass, 0, maxPermits); err != nil {
		return nil, errors.Join(err, e.cond.Close())
	}
	return e, nil
}

func (e *event) IsSet(ctx context.Context) (set bool, err error) {
	err = e.withLock(ctx, func() error {
		set = e.flag.permitCount() != 0
		return nil
	})
	return set, err
}

func (e *event) Set(ctx context.Context) error {
	return e.withLock(ctx, func() error {
		e.flag.tryAcquire()
		return errors.Join(e.flag.Release(), e.cond.NotifyAll(ctx))
	})
}

func (e *event) Clear(ctx context.Context) error {
	return e.withLock(ctx, func() error {
		e.flag.tryAcquire()
		return nil
	})
}

func (e *event) Wait(ctx context.Context) error {
	return e.withLock(ctx, func() error {
		for e.flag.permitCount() == 0 {
			if err := e.cond.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *event) withLock(ctx context.Context, do func() error) error {
	return withSemaphore(ctx, e.cond.semaphore, do)
}

// withSemaphore calls do with a lock held. It returns [context.Cause], without a call of do, if
// ctx is done before it has the lock.
func withSemaphore(ctx context.Context, lock *semaphore, do func() error) error {
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	return errors.Join(do(), lock.Release())
}

func (e *event) Close() error { return errors.Join(e.cond.Close(), e.flag.Close()) }

// decodeEvent decodes the state {'_cond': Condition, '_flag': Semaphore} to an *event.
func (i *importer) decodeEvent(o *pickle.Object) (any, error) {
	state, err := i.Lift(o.State)
	if err != nil {
		return nil, err
	}
	parts, _ := state.(*python.Dict)
	cond, _ := parts.Get("_cond")
	flag, _ := parts.Get("_flag")
	e := new(event)
	var ok, both bool
	e.cond, ok = cond.(*condition)
	e.flag, both = flag.(*semaphore)
	if !ok || !both {
		return nil, protocolError("parts of an Event are %T and %T, want a Condition and a Semaphore", cond, flag)
	}
	return e, nil
}

func (e *exporter) encodeEvent(v *event) (any, error) {
	cond, err := e.Lower(v.cond)
	if err != nil {
		return nil, err
	}
	flag, err := e.Lower(v.flag)
	if err != nil {
		return nil, err
	}
	return newInstance(eventClass, python.NewDict("_cond", cond, "_flag", flag)), nil
}
