package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Cond lets goroutines of any processes wait until another goroutine, which holds the Cond's
// Mutex, notifies them. A Cond travels together with its Mutex. The zero Cond is closed.
type Cond struct {
	obj *object
	mu  Mutex
}

const condName = "Cond"

// NewCond makes a Cond with m, or with a Mutex of its own if m is nil. Several Conds may have one
// Mutex: a process that has locked m, or the Mutex of one of these Conds, may wait in each of them.
// The caller must close the Cond, and m as well.
func NewCond(m *Mutex) (c *Cond, err error) {
	c = new(Cond)
	if m == nil {
		if m, err = NewMutex(); err != nil {
			return nil, err
		}
		c.mu = *m
	} else if c.mu.obj, err = m.obj.clone(arena.FormMutex); err != nil {
		return nil, fmt.Errorf("new %s: %w", condName, err)
	}
	if c.obj, err = newObject(condName, arena.SyncOptions{Form: arena.FormCond}); err != nil {
		return nil, errors.Join(err, c.mu.Close())
	}
	return c, nil
}

// Mutex returns the Mutex, which is closed with c.
func (c *Cond) Mutex() *Mutex { return &c.mu }

// Wait unlocks the Mutex, which this process holds, waits until it is notified or ctx ends, and
// locks it again. It may return without a notification, in particular when another process that
// waited dies, so the caller checks its condition in a loop. WaitFor has that loop.
//
// When Wait returns nil or an error of ctx, the caller holds the Mutex. It also holds the Mutex
// with ErrOwnerDied, which Wait returns without a notification if the holder of the Mutex dies;
// Mutex.Lock says what to do then. It does not hold the Mutex with ErrNotRecoverable or ErrClosed,
// nor with ErrLocked, which comes with the error of ctx: another process has kept the Mutex for
// more than a second after the end of ctx, as one does that is stopped.
func (c *Cond) Wait(ctx context.Context) error {
	return c.obj.do(ctx, "wait", nil, func() error {
		if err := c.mu.obj.enter(); err != nil {
			return err
		}
		defer c.mu.obj.leave()
		if !c.mu.obj.locks() {
			return ErrNotOwner
		}
		held, err := arena.Cond{Sync: c.obj.sync}.Wait(ctx, c.mu.shm())
		if !held {
			c.mu.obj.dropLock()
			if end := context.Cause(ctx); end != nil && errors.Is(err, end) {
				err = fmt.Errorf("%w: %w", ErrLocked, err)
			}
		}
		return err
	})
}

// WaitFor waits until ready, which is called with the Mutex held, returns true.
func (c *Cond) WaitFor(ctx context.Context, ready func() bool) error {
	for !ready() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Notify wakes up to n of the goroutines that wait. Hold the Mutex while you notify: if the
// notifier dies before, the next goroutine to hold the Mutex gets ErrOwnerDied, and notifies all
// before it marks the Mutex consistent.
func (c *Cond) Notify(n int) error {
	return c.obj.do(context.Background(), "notify", nil, func() error {
		arena.Cond{Sync: c.obj.sync}.Notify(n)
		return nil
	})
}

// NotifyAll wakes all goroutines that wait.
func (c *Cond) NotifyAll() error { return c.Notify(1 << 30) }

// Close closes the Cond in this process, and the Mutex that Mutex returns. A Wait that is going on
// in this process returns ErrClosed. Close is idempotent.
func (c *Cond) Close() error { return errors.Join(c.obj.close(), c.mu.Close()) }

// condTags are those of [object, Mutex].
var condTags = &codec.Tags{Type: condName, Fields: []int{2}}

// marshalWire lets a Cond be part of a value that is sent. Its receiver has one of its own, with
// its Mutex.
func (c *Cond) marshalWire(e *codec.Encoder) error {
	e.Tag(condTags, 0)
	return errors.Join(c.obj.marshal(e), c.mu.marshalWire(e))
}

// unmarshalWire is the counterpart of marshalWire.
func (c *Cond) unmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(condTags); err != nil {
		return err
	}
	if c.obj, err = readObject(d, condName, arena.FormCond); err != nil {
		return err
	}
	return c.mu.unmarshalWire(d)
}
