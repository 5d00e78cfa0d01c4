package torch

import (
	"context"
	"sync/atomic"
)

// These are the states of a message in [Conn], field rest, that is still being written after the
// context of its call was done.
const (
	restNone = iota
	restWritten
	restAndEnd // writeRest must close the connection at the end
)

// unwritten is the number of such messages over all connections.
var unwritten atomic.Int64

// write writes a message. The caller must hold the writer's lock, c.sending, which is released
// when the whole message has been written: see Note [Messages that have begun]. If ctx is done
// after the first byte, write returns nil and a goroutine writes the rest.
func (c *Conn) write(ctx context.Context, b []byte) error {
	if c.lock != nil {
		if err := c.lock.Acquire(ctx); err != nil {
			<-c.sending
			return err
		}
	}
	n := 0
	err := c.runWithin(ctx, c.stream.SetWriteDeadline, func() (err error) {
		n, err = putFrame(c.stream, b)
		return classifyTimeout(err, n > 0)
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

// writeRest writes rest, the remaining bytes of a frame, and releases the writer's lock. It
// blocks until the peer reads, so it runs in a goroutine of its own.
func (c *Conn) writeRest(rest []byte) {
	defer unwritten.Add(-1)
	_, err := c.stream.Write(rest)
	if c.rest.Swap(restNone) == restAndEnd || err != nil {
		c.broken.Store(true)
		c.closeStream()
	}
	c.unlock(nil)
	<-c.sending
}
