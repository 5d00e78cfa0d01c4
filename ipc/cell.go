package ipc

import "github.com/shoal-mp/shoal/internal/codec"

// A cell is the part that a Mutex and its siblings have in common: one object in shared memory.
// Each of them reads the object from a message by itself, because a Mutex is not an Event.
type cell struct{ obj *object }

// Close gives this process's reference back, once it does not hold a lock by it any more. The
// goroutines of this process that wait for it get ErrClosed. Close is idempotent.
func (c *cell) Close() error { return c.obj.close() }

// marshalWire lets the object be part of a value that is sent. Its receiver has one of its own, of
// the same memory.
func (c *cell) marshalWire(e *codec.Encoder) error { return c.obj.marshal(e) }
