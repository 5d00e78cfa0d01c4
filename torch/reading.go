package torch

import (
	"context"
	"errors"
)

// Note [Messages that have begun] A frame that is read or written in part cannot be left: other
// processes read and write at the same end of a queue's pipe, and so do later calls. So a call
// whose context ends in the middle of a frame returns, and a goroutine goes on with the frame. It
// keeps the place of the reader or writer meanwhile, and the lock of the queue, as a process of
// Python does until it has the whole frame.
//
// The same holds for the descriptors that a message promises: a sharer that was asked gives a
// descriptor once. So a goroutine fetches them, and a call whose context ends gives the message
// back, with what has come. It is the next one that this process receives at that end. Other
// processes cannot have it. Close drops it: then its descriptors are closed when they have come. So
// it is with the memory of a GPU that the sender's device has yet to write.

// arrival waits for a message. The caller says that it has received it, or gives it back.
func (c *Conn) arrival(ctx context.Context) (arrival, error) {
	for {
		if a, ok := c.came.take(); ok {
			return a, nil
		}
		select {
		case c.reading <- struct{}{}:
			a, ok, err := c.next(ctx)
			if ok {
				return a, err
			}
		case <-c.came.signal:
		case <-ctx.Done():
			return arrival{}, context.Cause(ctx)
		}
	}
}

// next reads a message, unless there is one that was read before. The caller has the reader's
// place; next gives it back.
func (c *Conn) next(ctx context.Context) (a arrival, ok bool, err error) {
	until, stop, ok := c.came.watch(ctx)
	if !ok {
		<-c.reading
		return a, false, nil
	}
	defer stop()
	b, err := c.read(until)
	switch {
	case err == nil:
		a = c.came.taken(b)
	case err == errBegun:
		go c.readRest()
		return a, ctx.Err() != nil, context.Cause(ctx)
	}
	<-c.reading
	return a, !errors.Is(err, errGivenBack), err
}

// read reads a message. If ctx ends in its middle, the error is errBegun, and the lock stays taken.
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
	err = c.within(ctx, c.stream.SetReadDeadline, func() (err error) {
		b, err = c.part.read(c.stream, c.opts.maxMessage())
		return err
	})
	if err == errBegun {
		return nil, err
	}
	if err == nil && c.free != nil {
		err = c.free.Release()
	}
	return b, c.unlock(c.verdict(ctx, err))
}

// readRest reads the rest of a message that was begun. It gives the reader's place back.
func (c *Conn) readRest() {
	if b, err := c.readOn(context.Background()); err == nil {
		c.came.put(b)
	} else {
		c.last = err
	}
	<-c.reading
}

// readAhead keeps messages for receivers, until the connection ends or there are too many.
func (c *Conn) readAhead() {
	for bytes := int64(0); bytes < c.opts.maxMessage(); {
		c.reading <- struct{}{}
		b, err := c.read(context.Background())
		if err == nil {
			bytes += int64(len(b))
			c.came.put(b)
		}
		c.last = err
		<-c.reading
		if err != nil {
			return
		}
	}
}

// unlock gives the lock of a queue's end back.
func (c *Conn) unlock(err error) error {
	if c.lock == nil {
		return err
	}
	if failed := c.lock.Release(); failed != nil {
		return errors.Join(err, failed)
	}
	return err
}
