package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Conn is what two processes have that met by Listen and Dial: values of type T, both ways. It
// stays with its process; a PipeEnd travels.
//
// If both are in one domain, it is a pipe, and shared memory goes by reference, as between
// processes that were started by each other. Dial joins the listener's domain if its process has
// none yet. Otherwise values go by copy through the socket, and one that holds shared memory is
// refused with ErrShared.
//
// Its methods may be called by several goroutines.
type Conn[T any] struct {
	pipe   *PipeEnd[T, T] // or
	stream *link.Conn     // between two domains
	plan   *wire.Plan[T]
}

// frameValue is the kind of frames with values on a stream.
const frameValue = 'V'

// maxValue bounds what goes through a stream.
const maxValue = 64 << 20

// Shared reports whether shared memory goes by reference.
func (c *Conn[T]) Shared() bool { return c.pipe != nil }

// Send sends v and waits while too much is on the way. v stays the caller's to close. The error is
// ErrClosed if the other side is closed or dead, ErrShared if v holds memory that it does not
// share, and wire.ErrTooLong beyond 64 MiB by copy.
func (c *Conn[T]) Send(ctx context.Context, v T) error {
	if c.pipe != nil {
		return c.pipe.Send(ctx, v)
	}
	e := wire.Encoder{Limits: wire.Limits{Bytes: maxValue}}
	e.Reset(nil)
	err := c.plan.Encode(&e, v)
	if m := e.Message(); err == nil && len(m.Blocks) > 0 {
		err = fmt.Errorf("send: %w", ErrShared)
	} else if err == nil {
		err = streamError(ctx, "send", c.stream.Send(ctx, frameValue, m.Body))
	}
	e.Done(err == nil)
	return err
}

// Recv receives a value and waits for it. The error is ErrClosed if the other side is closed or
// dead and has sent no more than was received.
func (c *Conn[T]) Recv(ctx context.Context) (v T, err error) {
	if c.pipe != nil {
		return c.pipe.Recv(ctx)
	}
	body, err := c.body(ctx)
	if err != nil {
		return v, err
	}
	return decodeBody(c.plan, body)
}

// body receives the bytes of a value from the stream.
func (c *Conn[T]) body(ctx context.Context) ([]byte, error) {
	kind, body, err := c.stream.Recv(ctx)
	if err != nil {
		return nil, streamError(ctx, "receive", err)
	}
	if kind != frameValue {
		return nil, fmt.Errorf("receive: %w: a frame of kind %d", wire.ErrFormat, kind)
	}
	return body, nil
}

// decodeBody reads a value without blocks.
func decodeBody[T any](plan *wire.Plan[T], body []byte) (T, error) {
	var d wire.Decoder
	d.Reset(wire.Message{Body: body}, nil)
	v, err := plan.Decode(&d)
	if err == nil {
		err = d.Finish()
	}
	d.Done(err == nil)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("receive: %w", err)
	}
	return v, nil
}

// streamError returns what an error of a stream means here.
func streamError(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, link.ErrFrame):
		return fmt.Errorf("%s: %w: %w", op, wire.ErrTooLong, err)
	case errors.Is(err, link.ErrClosed):
		return ErrClosed
	case ctx.Err() != nil:
		return contextError(ctx, op, ErrEmpty)
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
	return streamError(ctx, "poll", err)
}

// Close closes this side. It is idempotent.
func (c *Conn[T]) Close() error {
	if c.pipe != nil {
		return c.pipe.Close()
	}
	c.stream.Close() // the second time it says that it was closed
	return nil
}
