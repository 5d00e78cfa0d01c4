package ipc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/crossing"
	"github.com/shoal-mp/shoal/internal/link"
)

// A Conn is what two processes have that met by Listen and Dial: values of type T, both ways. It
// stays with its process; a PipeEnd travels.
//
// If both are in one domain, it is a pipe, and shared memory goes by reference, as between
// processes that were started by each other. Dial joins the listener's domain if its process has
// none yet.
//
// Otherwise, and always between machines, values go by copy. A tensor is copied as well: its
// receiver has one of its own, of any size for which its domain has room, and sees nothing of what
// the sender writes later. Tensors of one storage of which each uses most stay views of one
// storage. What would not be the same thing as a copy, such as a queue, a lock or a file, is
// refused with ErrShared.
//
// Its methods may be called by several goroutines.
type Conn[T any] struct {
	pipe   *PipeEnd[T, T] // or
	stream *link.Conn     // between two domains
	plan   *codec.Plan[T]
}

// frameValue is the kind of frames with values on a stream.
const frameValue = 'V'

// maxValue bounds what goes through a stream.
const maxValue = 64 << 20

// Shared reports whether shared memory goes by reference.
func (c *Conn[T]) Shared() bool { return c.pipe != nil }

// Send sends v and waits while too much is on the way. v stays the caller's to close. The error is
// ErrClosed if the other side is closed or dead, ErrShared if v holds what cannot be copied, and
// wire.ErrTooLong beyond 64 MiB by copy, of which shared memory does not count. If ctx ends in the
// middle of a value by copy, the connection is closed.
func (c *Conn[T]) Send(ctx context.Context, v T) error {
	if c.pipe != nil {
		return c.pipe.Send(ctx, v)
	}
	e := codec.Encoder{Limits: codec.Limits{Bytes: maxValue}, ByValue: true}
	e.Reset(nil)
	err := c.plan.Encode(&e, v)
	if err == nil {
		err = c.send(ctx, e.Message())
	}
	e.Done(err == nil)
	return err
}

// send sends a message with copies of its blocks.
func (c *Conn[T]) send(ctx context.Context, m codec.Message) error {
	blocks, ok, err := crossing.Copies(m)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if !ok {
		return fmt.Errorf("send: %w", ErrShared)
	}
	return streamError(ctx, "send", crossing.Send(ctx, c.stream, frameValue, m, blocks), ErrFull)
}

// Recv receives a value and waits for it. The error is ErrClosed if the other side is closed or
// dead and has sent no more than was received; it wraps io.ErrUnexpectedEOF as well if that was in
// the middle of a value by copy. It wraps shm.ErrNoSpace if there is no room for a copy: the value
// is lost, and the next one can be received.
//
// If ctx ends in the middle of a value by copy, the next Recv goes on there.
func (c *Conn[T]) Recv(ctx context.Context) (v T, err error) {
	if c.pipe != nil {
		return c.pipe.Recv(ctx)
	}
	m, err := c.message(ctx)
	if err != nil {
		return v, err
	}
	if v, err = crossing.Decode(c.plan, m); err != nil {
		return v, c.sent(fmt.Errorf("receive: %w", err))
	}
	return v, nil
}

// sent returns the error of a message with the host that has sent it, if that is another one.
func (c *Conn[T]) sent(err error) error {
	if host := c.stream.Host(); err != nil && host != "" {
		return fmt.Errorf("%w (sent by %s)", err, host)
	}
	return err
}

// message receives a value from the stream, with a reference of each copied block.
func (c *Conn[T]) message(ctx context.Context) (m codec.Message, err error) {
	m, blocks, err := crossing.Recv(ctx, c.stream, frameValue)
	if err != nil {
		return m, streamError(ctx, "receive", err, ErrEmpty)
	}
	for _, b := range blocks {
		if b.Number != crossing.Copied {
			crossing.Release(m.Blocks)
			return m, c.sent(fmt.Errorf("receive: %w: block %d, which is nobody's", codec.ErrFormat, b.Number))
		}
	}
	if err := crossing.Check(m, blocks, func(i int) int { return i }); err != nil {
		crossing.Release(m.Blocks)
		return m, c.sent(fmt.Errorf("receive: %w", err))
	}
	return m, nil
}

// streamError returns what an error of a stream means here. state is why a call waits.
func streamError(ctx context.Context, op string, err, state error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, link.ErrFrame):
		return fmt.Errorf("%s: %w: %w", op, codec.ErrTooLong, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", op, ErrClosed, err) // in the middle of a value
	case errors.Is(err, link.ErrClosed):
		return ErrClosed
	case ctx.Err() != nil:
		return contextError(ctx, op, state)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// Poll waits until a Recv would not wait: there is a value, or at least the first of it, or the
// other side is gone.
func (c *Conn[T]) Poll(ctx context.Context) error {
	if c.pipe != nil {
		return c.pipe.Poll(ctx)
	}
	err := c.stream.Await(ctx)
	if errors.Is(err, link.ErrClosed) {
		return nil
	}
	return streamError(ctx, "poll", err, ErrEmpty)
}

// Close closes this side. It is idempotent.
func (c *Conn[T]) Close() error {
	if c.pipe != nil {
		return c.pipe.Close()
	}
	c.stream.Close() // the second time it says that it was closed
	return nil
}
