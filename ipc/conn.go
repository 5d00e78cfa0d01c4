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

// A Conn is a bidirectional connection for values of type T between two processes that met by
// [Listen] and [Dial]. It cannot be sent to another process, unlike a [PipeEnd].
//
// If both processes are in one domain, the connection is a pipe, and shared memory is passed by
// reference, as between parent and child processes. Dial joins the listener's domain if its process
// has no domain yet.
//
// Otherwise, and always between machines, values are passed by copy. The receiver of a tensor gets
// its own copy, of any size that fits into its domain, and does not see later writes of the sender.
// Tensors of one storage remain views of one storage in the copy if each of them covers most of it.
// Send returns [ErrShared] for values that cannot be copied, such as a queue, a lock or a file.
//
// All methods may be called from several goroutines.
type Conn[T any] struct {
	pipe   *PipeEnd[T, T] // set within one domain
	stream *link.Conn     // set between two domains
	plan   *codec.Plan[T]
}

// frameValue is the frame type of a value on a stream.
const frameValue = 'V'

// maxValue limits the encoded size of a value on a stream, in bytes.
const maxValue = 64 << 20

// Shared reports whether shared memory is passed by reference. If it is false, values are passed
// by copy.
func (c *Conn[T]) Shared() bool { return c.pipe != nil }

// Send sends v, and blocks while the connection's buffers are full. The caller must still close v.
// Send returns [ErrClosed] if the peer has closed the connection or died. If values are passed by
// copy, it returns [ErrShared] if v contains a value that cannot be copied, and wire.ErrTooLong if
// the encoding exceeds 64 MiB, which does not include shared memory; if ctx is done in the middle
// of a value, Send closes the connection.
func (c *Conn[T]) Send(ctx context.Context, v T) error {
	if c.pipe != nil {
		return c.pipe.Send(ctx, v)
	}
	e := codec.Encoder{Limits: codec.Limits{Bytes: maxValue}, ByValue: true}
	e.Reset(nil)
	err := c.plan.Encode(&e, v)
	if err == nil {
		err = c.sendCopy(ctx, e.Message())
	}
	e.Done(err == nil)
	return err
}

// sendCopy sends a message with copies of its blocks over the stream. It returns [ErrShared] if
// a block cannot be copied.
func (c *Conn[T]) sendCopy(ctx context.Context, m codec.Message) error {
	blocks, ok, err := crossing.Copies(m)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if !ok {
		return fmt.Errorf("send: %w", ErrShared)
	}
	return streamError(ctx, "send", crossing.Send(ctx, c.stream, frameValue, m, blocks), ErrFull)
}

// Recv waits for a value and returns it. The caller must close the shared memory of the value. Recv
// returns [ErrClosed] once all values were received and the peer has closed the connection or died.
// The error also wraps [io.ErrUnexpectedEOF] if the stream ended in the middle of a value. If there
// is no memory for the copy, the error wraps shm.ErrNoSpace: the value is lost, but the next one
// can be received.
//
// If ctx is done in the middle of a copied value, the next Recv resumes there.
func (c *Conn[T]) Recv(ctx context.Context) (v T, err error) {
	if c.pipe != nil {
		return c.pipe.Recv(ctx)
	}
	m, err := c.recvMessage(ctx)
	if err != nil {
		return v, err
	}
	if v, err = crossing.Decode(c.plan, m); err != nil {
		return v, c.wrapHost(fmt.Errorf("receive: %w", err))
	}
	return v, nil
}

// wrapHost adds the sender's host to the text of err if the sender is another machine. It
// returns err unchanged otherwise, and nil if err is nil. c must be a connection by stream.
func (c *Conn[T]) wrapHost(err error) error {
	if host := c.stream.Host(); err != nil && host != "" {
		return fmt.Errorf("%w (sent by %s)", err, host)
	}
	return err
}

// recvMessage receives an encoded value from the stream. c must be a connection by stream. The
// caller owns one reference to each copied block.
func (c *Conn[T]) recvMessage(ctx context.Context) (m codec.Message, err error) {
	m, blocks, err := crossing.Recv(ctx, c.stream, frameValue)
	if err != nil {
		return m, streamError(ctx, "receive", err, ErrEmpty)
	}
	for _, b := range blocks {
		if b.Number != crossing.Copied {
			crossing.Release(m.Blocks)
			return m,
				c.wrapHost(fmt.Errorf("receive: %w: block %d is not part of the message", codec.ErrFormat, b.Number))
		}
	}
	if err := crossing.Check(m, blocks, func(i int) int { return i }); err != nil {
		crossing.Release(m.Blocks)
		return m, c.wrapHost(fmt.Errorf("receive: %w", err))
	}
	return m, nil
}

// streamError translates an error of the stream to the errors of this package. state is the
// sentinel that describes the blocked operation, such as [ErrFull]; it is part of the error if ctx
// exceeded its deadline.
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

// Poll blocks until Recv would not block: the first bytes of a value have arrived, or the peer is
// gone. It then returns nil. If ctx is done first, it returns the error of ctx, with [ErrEmpty] if
// the deadline has expired.
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

// Close closes this side of the connection. It is idempotent.
func (c *Conn[T]) Close() error {
	if c.pipe != nil {
		return c.pipe.Close()
	}
	c.stream.Close() // ignore the error: a second Close returns one
	return nil
}
