package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/wire"
)

// pipeCapacity is how many values may wait in each direction of a pipe.
const pipeCapacity = 64

// A PipeEnd is one end of a pipe between processes of one domain: it sends values of type S, which
// the other side receives, and receives values of type R. It travels to other processes. A process
// that gave it away closes its own, as with the two ends of an os.Pipe: the other side notices the
// end only when nobody has this one any more.
//
// Processes that were not started by each other meet by Listen and Dial, and have a Conn.
//
// Its methods may be called by several goroutines. The zero PipeEnd is closed.
type PipeEnd[S, R any] struct {
	out Sender[S]
	in  Receiver[R]
}

// Pipe makes a pipe and returns its two sides; what one sends the other receives. The caller closes
// both. For a pipe with one direction, use the Sender and the Receiver of a Queue.
func Pipe[T any]() (a, b *PipeEnd[T, T], err error) { return Pipe2[T, T]() }

// Pipe2 is Pipe with a type for each direction: requests and replies, or actions and observations.
func Pipe2[S, R any]() (a *PipeEnd[S, R], b *PipeEnd[R, S], err error) {
	there, err := NewQueue[S](pipeCapacity)
	if err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	back, err := NewQueue[R](pipeCapacity)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("pipe: %w", err), there.Close())
	}
	return &PipeEnd[S, R]{there.send, back.recv}, &PipeEnd[R, S]{back.send, there.recv}, nil
}

// Send sends v and waits while too much is on the way. v is copied, but for the blocks of shared
// memory that it holds, and stays the caller's to close. The error is ErrClosed if the other side
// is closed or dead.
func (c *PipeEnd[S, R]) Send(ctx context.Context, v S) error { return c.out.Put(ctx, v) }

// TrySend is Send that returns ErrFull instead of waiting.
func (c *PipeEnd[S, R]) TrySend(v S) error { return c.out.TryPut(v) }

// Recv receives a value and waits for it. The error is ErrClosed if the other side is closed or
// dead and has sent no more than was received.
func (c *PipeEnd[S, R]) Recv(ctx context.Context) (R, error) { return c.in.Get(ctx) }

// TryRecv is Recv that returns ErrEmpty instead of waiting.
func (c *PipeEnd[S, R]) TryRecv() (R, error) { return c.in.TryGet() }

// All returns what is received until the other side is closed or dead; see Receiver.All.
func (c *PipeEnd[S, R]) All(ctx context.Context) iter.Seq2[R, error] { return c.in.All(ctx) }

// Poll waits until a Recv would not, because there is a value or the other side is gone; see
// Receiver.Poll.
func (c *PipeEnd[S, R]) Poll(ctx context.Context) error { return c.in.Poll(ctx) }

// Len returns the number of values that wait to be received.
func (c *PipeEnd[S, R]) Len() int { return c.in.Len() }

// Close closes this side in this process. It is idempotent.
func (c *PipeEnd[S, R]) Close() error { return errors.Join(c.out.Close(), c.in.Close()) }

// MarshalWire lets a side be part of a value that is sent. Its receiver has that side as well.
func (c *PipeEnd[S, R]) MarshalWire(e *wire.Encoder) error {
	e.Tag(pairTags, 0)
	return errors.Join(c.out.MarshalWire(e), c.in.MarshalWire(e))
}

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if the pipe carries other
// types.
func (c *PipeEnd[S, R]) UnmarshalWire(d *wire.Decoder) error {
	if err := d.OnlyTag(pairTags); err != nil {
		return err
	}
	if err := c.out.UnmarshalWire(d); err != nil {
		return err
	}
	return c.in.UnmarshalWire(d)
}
