package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Cond lets goroutines of any processes wait, having let go of a Mutex, for what another does
// under it. It travels together with its Mutex. The zero Cond is closed.
type Cond struct{ cond }

// A cond is what travels of a Cond.
type cond struct {
	obj *object
	mu  Mutex
}

const condName = "Cond"

// NewCond makes a Cond with m, or with a Mutex of its own if m is nil. The caller closes it, and m
// apart from it.
func NewCond(m *Mutex) (c *Cond, err error) {
	c = new(Cond)
	if m == nil {
		if m, err = NewMutex(); err != nil {
			return nil, err
		}
		c.mu = *m
	} else if c.mu.obj, err = m.obj.clone(shm.FormMutex); err != nil {
		return nil, fmt.Errorf("new %s: %w", condName, err)
	}
	if c.obj, err = newObject(condName, shm.SyncOptions{Form: shm.FormCond}); err != nil {
		return nil, errors.Join(err, c.mu.Close())
	}
	return c, nil
}

// Mutex returns the Mutex, which is closed with c.
func (c *Cond) Mutex() *Mutex { return &c.mu }

// Wait unlocks the Mutex, which this process holds, waits until it is notified or ctx ends, and
// locks it again in any case, however long that takes. It may return without a notification, in
// particular when another process dies that waited, so the caller checks what it waits for in a
// loop; WaitFor does.
//
// With nil, and with an error of ctx, the Mutex is held. So it is with ErrOwnerDied, which comes
// without a notification if the holder of the Mutex dies; see Mutex.Lock. It is not with
// ErrNotRecoverable and with ErrClosed.
func (c *Cond) Wait(ctx context.Context) error {
	return c.obj.do(ctx, "wait", nil, func() error {
		if !c.mu.obj.kept() {
			return ErrNotOwner
		}
		held, err := shm.Cond{Sync: c.obj.sync}.Wait(ctx, c.mu.shm())
		if !held {
			c.mu.obj.drop()
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

// Notify wakes up to n of those who wait. Notify best while holding the Mutex: if the notifier dies
// before, those who wait learn that the holder of the Mutex died, and the one that is told so
// notifies all before it marks the Mutex consistent.
func (c *Cond) Notify(n int) error {
	return c.obj.do(context.Background(), "notify", nil, func() error {
		shm.Cond{Sync: c.obj.sync}.Notify(n)
		return nil
	})
}

// NotifyAll wakes all who wait.
func (c *Cond) NotifyAll() error { return c.Notify(1 << 30) }

// Close gives this process's reference back, and that of its own handle of the Mutex. Those who
// wait here get ErrClosed. Close is idempotent.
func (c *cond) Close() error { return errors.Join(c.obj.close(), c.mu.Close()) }

// condTags are those of [object, Mutex].
var condTags = &wire.Tags{Type: condName, Fields: []int{2}}

// MarshalWire lets a Cond be part of a value that is sent. Its receiver has one of its own, with
// its Mutex.
func (c *cond) MarshalWire(e *wire.Encoder) error {
	e.Tag(condTags, 0)
	return errors.Join(c.obj.marshal(e), c.mu.MarshalWire(e))
}

// UnmarshalWire is the counterpart of MarshalWire.
func (c *cond) UnmarshalWire(d *wire.Decoder) (err error) {
	if err := d.OnlyTag(condTags); err != nil {
		return err
	}
	if c.obj, err = readObject(d, condName, shm.FormCond); err != nil {
		return err
	}
	return c.mu.UnmarshalWire(d)
}
