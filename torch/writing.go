package torch

import (
	"context"
	"sync/atomic"
)

// What Conn.rest says about a message whose writing has outlasted the context of its call.
const (
	restNone = iota
	restWritten
	restAndEnd // the connection ends when it is written
)

// unwritten counts such messages of all connections.
var unwritten atomic.Int64

// write writes a message. The caller has the writer's place. It is given back when the message is
// written: see Note [Messages that have begun].
func (c *Conn) write(ctx context.Context, b []byte) error {
	if c.lock != nil {
		if err := c.lock.Acquire(ctx); err != nil {
			<-c.sending
			return err
		}
	}
	n := 0
	err := c.within(ctx, c.stream.SetWriteDeadline, func() (err error) {
		n, err = putFrame(c.stream, b)
		return timeUp(err, n > 0)
	})
	if err == errBegun {
		unwritten.Add(1)
		c.rest.Store(restWritten)
		go c.writeRest(frameRest(b, n))
		return nil
	}
	err = c.unlock(err)
	<-c.sending
	return err
}

// writeRest writes the rest of a message.
func (c *Conn) writeRest(rest []byte) {
	defer unwritten.Add(-1)
	_, err := c.stream.Write(rest)
	if c.rest.Swap(restNone) == restAndEnd || err != nil {
		c.broken.Store(true)
		c.shut()
	}
	c.unlock(nil)
	<-c.sending
}
