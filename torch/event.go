package torch

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// An Event is multiprocessing's: a Condition, and a semaphore that is 1 while it is set. Its
// methods may be called by several goroutines.
type Event struct {
	cond *Cond
	flag *Semaphore
}

// NewEvent makes an Event that is not set; see NewLock.
func NewEvent() (*Event, error) {
	lock, err := NewLock()
	if err != nil {
		return nil, err
	}
	e := new(Event)
	if e.cond, err = NewCond(lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if e.flag, err = NewSemaphore(0); err != nil {
		return nil, errors.Join(err, e.cond.Close())
	}
	return e, nil
}

// IsSet reports whether the event is set. It takes the event's lock, as all methods do: Python's
// is_set takes the flag for a moment.
func (e *Event) IsSet(ctx context.Context) (set bool, err error) {
	err = e.locked(ctx, func() error {
		set = e.flag.Permits() != 0
		return nil
	})
	return set, err
}

// Set sets the event, and wakes all who wait for it.
func (e *Event) Set(ctx context.Context) error {
	return e.locked(ctx, func() error {
		e.flag.take()
		return errors.Join(e.flag.Release(), e.cond.NotifyAll(ctx))
	})
}

// Clear makes the event not set.
func (e *Event) Clear(ctx context.Context) error {
	return e.locked(ctx, func() error {
		e.flag.take()
		return nil
	})
}

// Wait waits until the event is set, or ctx is done.
func (e *Event) Wait(ctx context.Context) error {
	return e.locked(ctx, func() error {
		for e.flag.Permits() == 0 {
			if err := e.cond.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *Event) locked(ctx context.Context, do func() error) error {
	return holding(ctx, e.cond.Lock, do)
}

// Close removes the names of what this process has made; see Semaphore.Close.
func (e *Event) Close() error { return errors.Join(e.cond.Close(), e.flag.Close()) }

// event reads the state {'_cond': Condition, '_flag': Semaphore}.
func (i *importer) event(o *pickle.Object) (any, error) {
	state, err := i.Lift(o.State)
	if err != nil {
		return nil, err
	}
	parts, _ := state.(*python.Dict)
	cond, _ := parts.Get("_cond")
	flag, _ := parts.Get("_flag")
	e := new(Event)
	var ok, both bool
	e.cond, ok = cond.(*Cond)
	e.flag, both = flag.(*Semaphore)
	if !ok || !both {
		return nil, protocolError("an Event is made of %T and %T", cond, flag)
	}
	return e, nil
}

func (e *exporter) event(v *Event) (any, error) {
	cond, err := e.Lower(v.cond)
	if err != nil {
		return nil, err
	}
	flag, err := e.Lower(v.flag)
	if err != nil {
		return nil, err
	}
	return withState(eventClass, python.NewDict("_cond", cond, "_flag", flag)), nil
}
