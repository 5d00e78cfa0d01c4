package ipc

import "github.com/shoal-mp/shoal/internal/codec"

// A cell is embedded in [Mutex] and the other synchronization types that consist of a single object
// in shared memory. Each of these types has its own unmarshalWire method, so that a Mutex is not
// received as an Event.
type cell struct{ obj *object }

// Close releases this process's reference. A lock that the process holds remains held, and the
// reference is released after the unlock. Goroutines of this process that wait on the object get
// [ErrClosed]. Close is idempotent.
func (c *cell) Close() error { return c.obj.close() }

// marshalWire encodes a reference to the object. The receiver gets its own reference to the same
// shared memory.
func (c *cell) marshalWire(e *codec.Encoder) error { return c.obj.marshal(e) }
