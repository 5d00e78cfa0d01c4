package torch

import (
	"context"
	"errors"
)

// Note [Messages that have begun] A frame that is partly read or written must be completed, because
// other processes use the same end of a queue's pipe, and later calls use the same connection. If
// the context of a call is done in the middle of a frame, the call returns and a goroutine
// continues with the frame. Meanwhile the goroutine keeps the reader's or writer's lock of the
// connection, and the lock of the queue, as a Python process does until the frame is complete.
//
// The descriptors of a message are treated alike, because a resource sharer that has been asked
// sends a descriptor only once. If the context of a call is done, a goroutine continues to fetch
// them, and the message, with the descriptors received so far, is put back. It is the next message
// that this process receives at that end; other processes cannot receive it. Close drops it and
// closes its descriptors when they have arrived. GPU memory that the sender's device has not yet
// written is treated in the same way.

// nextArrival returns the next message. The caller must call recordReceived or reinsertMessage on
// c.came afterwards.
func (c *Conn) nextArrival(ctx context.Context) (arrival, error) {
	for {
		if a, ok := c.came.takeFirst(); ok {
			return a, nil
		}
		select {
		case c.reading <- struct{}{}:
			a, ok, err := c.readMessage(ctx)
			if ok {
				return a, err
			}
		case <-c.came.signal:
		case <-ctx.Done():
			return arrival{}, context.Cause(ctx)
		}
	}
}

// readMessage reads a message. ok is false if the caller should check c.came again instead. The
// caller must hold the reader's lock, which next releases, if necessary after the rest of the frame
// has been read.
func (c *Conn) readMessage(ctx context.Context) (a arrival, ok bool, err error) {
	until, stop, ok := c.came.watchContext(ctx)
	if !ok {
		<-c.reading
		return a, false, nil
	}
	defer stop()
	b, err := c.read(until)
	switch {
	case err == nil:
		a = c.came.assignNumber(b)
	case err == errBegun:
		go c.readRest()
		return a, ctx.Err() != nil, context.Cause(ctx)
	}
	<-c.reading
	return a, !errors.Is(err, errGivenBack), err
}

// read reads a message. If ctx is done in the middle of it, the error is errBegun and the lock of
// the queue stays held.
func (c *Conn) read(ctx context.Context) ([]byte, error) {
	if c.last != nil {
		return nil, c.last
	}
	if c.lock != nil {
		if err := c.lock.Acquire(ctx); err != nil {
			return nil, err
		}
	}
	return c.readOn(ctx)
}

func (c *Conn) readOn(ctx context.Context) (b []byte, err error) {
	err = c.runWithin(ctx, c.stream.SetReadDeadline, func() (err error) {
		b, err = c.part.read(c.stream, c.opts.maxMessage())
		return err
	})
	if err == errBegun {
		return nil, err
	}
	if err == nil && c.free != nil {
		err = c.free.Release()
	}
	return b, c.unlock(c.explainError(ctx, err))
}

// readRest completes a partly read message, and releases the reader's lock.
func (c *Conn) readRest() {
	if b, err := c.readOn(context.Background()); err == nil {
		c.came.appendMessage(b)
	} else {
		c.last = err
	}
	<-c.reading
}

// readAhead buffers messages until the connection ends or their size exceeds MaxMessage.
func (c *Conn) readAhead() {
	for bytes := int64(0); bytes < c.opts.maxMessage(); {
		c.reading <- struct{}{}
		b, err := c.read(context.Background())
		if err == nil {
			bytes += int64(len(b))
			c.came.appendMessage(b)
		}
		c.last = err
		<-c.reading
		if err != nil {
			return
		}
	}
}

// unlock releases the lock of the queue's end, if there is one, and returns err.
func (c *Conn) unlock(err error) error {
	if c.lock == nil {
		return err
	}
	if failed := c.lock.Release(); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}
