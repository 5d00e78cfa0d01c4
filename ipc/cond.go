package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Cond is a condition variable for goroutines in any processes of the domain. A waiting goroutine
// must hold the Cond's [Mutex]. A Cond is sent together with its Mutex. The zero Cond is closed.
type Cond struct {
	obj *object
	mu  Mutex
}

const condName = "Cond"

// NewCond returns a Cond that uses m, or a new Mutex if m is nil. Several Conds may share one
// Mutex: a process that has locked m, or the Mutex of one of these Conds, may wait on each of them.
// The caller must close the Cond. The Cond has its own reference to m, so the caller must still
// close m as well.
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

// Mutex returns the Cond's Mutex. [Cond.Close] closes it.
func (c *Cond) Mutex() *Mutex { return &c.mu }

// Wait atomically unlocks the Mutex, which this process must hold, and blocks until a notification
// arrives or ctx is done. Then it locks the Mutex again. Spurious wakeups occur, in particular when
// another waiting process dies, so the caller must check its condition in a loop, as [Cond.WaitFor]
// does.
//
// The caller holds the Mutex again if Wait returns nil or an error of ctx alone. It also holds the
// Mutex if the error wraps [ErrOwnerDied], which Wait returns, without a notification, if the
// holder of the Mutex dies; see [Mutex.Lock] for the required recovery.
//
// The caller does not hold the Mutex if the error wraps [ErrNotRecoverable], [ErrClosed] or
// [ErrLocked]. Wait returns ErrLocked together with the error of ctx if another process, for
// example a stopped one, kept the Mutex for more than a second after ctx was done. It returns
// [ErrNotOwner] if this process did not hold the Mutex.
func (c *Cond) Wait(ctx context.Context) error {
	return c.obj.runOp(ctx, "wait", nil, func() error {
		if err := c.mu.obj.beginOp(); err != nil {
			return err
		}
		defer c.mu.obj.endOp()
		if !c.mu.obj.holdsLock() {
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

// WaitFor calls [Cond.Wait] in a loop until ready returns true; then it returns nil with the
// Mutex held. The caller must hold the Mutex; ready is called with the Mutex held. The errors
// are the same as for Wait, which also documents whether the Mutex is held after an error.
func (c *Cond) WaitFor(ctx context.Context, ready func() bool) error {
	for !ready() {
		if err := c.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Notify wakes up to n waiting goroutines. The caller should hold the Mutex. If the caller holds
// the Mutex and its process dies before notifying, the next process to lock the Mutex gets
// [ErrOwnerDied], and must call [Cond.NotifyAll] before [Mutex.MarkConsistent].
func (c *Cond) Notify(n int) error {
	return c.obj.runOp(context.Background(), "notify", nil, func() error {
		arena.Cond{Sync: c.obj.sync}.Notify(n)
		return nil
	})
}

// NotifyAll wakes all waiting goroutines. As with [Cond.Notify], the caller should hold the Mutex.
func (c *Cond) NotifyAll() error { return c.Notify(1 << 30) }

// Close closes the Cond and its Mutex in this process. Waiting goroutines of this process get
// [ErrClosed]. Close is idempotent.
func (c *Cond) Close() error { return errors.Join(c.obj.close(), c.mu.Close()) }

// condTags describes the encoding: [object, Mutex].
var condTags = &codec.Tags{Type: condName, Fields: []int{2}}

// marshalWire encodes references to the Cond and its Mutex. The receiver gets its own references to
// both.
func (c *Cond) marshalWire(e *codec.Encoder) error {
	e.Tag(condTags, 0)
	return errors.Join(c.obj.marshal(e), c.mu.marshalWire(e))
}

// unmarshalWire decodes a Cond.
func (c *Cond) unmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(condTags); err != nil {
		return err
	}
	if c.obj, err = readObject(d, condName, arena.FormCond); err != nil {
		return err
	}
	return c.mu.unmarshalWire(d)
}
