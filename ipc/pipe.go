package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
)

// pipeCapacity is how many values may wait in each direction of a pipe.
const pipeCapacity = 64

// A PipeEnd is one end of a pipe between processes of one domain: it sends values of type S, which
// the other side receives, and receives values of type R. It travels to other processes. A process
// that has sent its PipeEnd away closes its own copy, as with the ends of an os.Pipe: the other
// side is told of the end only when no process has this side any more.
//
// Processes that did not start each other meet by Listen and Dial, and have a Conn.
//
// Its methods may be called by several goroutines. The zero PipeEnd is closed.
type PipeEnd[S, R any] struct {
	out Sender[S]
	in  Receiver[R]
}

// Pipe makes a pipe and returns its two sides: a sends values of type S, which b receives, and b
// sends values of type R, which a receives. The two types are requests and replies, or actions and
// observations, or the same. The caller closes both. For a pipe with one direction, use the Sender
// and the Receiver of a Queue.
func Pipe[S, R any]() (a *PipeEnd[S, R], b *PipeEnd[R, S], err error) {
	there, err := newEnds[S](QueueOptions{Capacity: pipeCapacity})
	if err != nil {
		return nil, nil, fmt.Errorf("pipe: %w", err)
	}
	back, err := newEnds[R](QueueOptions{Capacity: pipeCapacity})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("pipe: %w", err), there.Close())
	}
	return &PipeEnd[S, R]{there.sender, back.receiver}, &PipeEnd[R, S]{back.sender, there.receiver}, nil
}

// Send sends v and waits while too much is on the way. v is copied, but for the blocks of shared
// memory that it holds, and stays the caller's to close. The error is ErrClosed if the other side
// is closed or dead.
func (c *PipeEnd[S, R]) Send(ctx context.Context, v S) error { return c.out.Put(ctx, v) }

// TrySend sends v as Send does, or returns ErrFull at once.
func (c *PipeEnd[S, R]) TrySend(v S) error { return c.out.TryPut(v) }

// Recv receives a value and waits for it. The error is ErrClosed if the other side is closed or
// dead and has sent no more than was received.
func (c *PipeEnd[S, R]) Recv(ctx context.Context) (R, error) { return c.in.Get(ctx) }

// TryRecv receives a value, or returns ErrEmpty at once.
func (c *PipeEnd[S, R]) TryRecv() (R, error) { return c.in.TryGet() }

// All yields the values as they are received, until the other side is closed or dead. An error is
// yielded once and ends the loop. Another loop may continue where one broke off.
func (c *PipeEnd[S, R]) All(ctx context.Context) iter.Seq2[R, error] { return c.in.All(ctx) }

// Poll waits until a Recv would not wait, because there is a value or the other side is gone. The
// error is ErrEmpty and context.DeadlineExceeded if ctx had a deadline.
func (c *PipeEnd[S, R]) Poll(ctx context.Context) error { return c.in.Poll(ctx) }

// Len returns the number of values that wait to be received.
func (c *PipeEnd[S, R]) Len() int { return c.in.Len() }

// Close closes this side in this process. It is idempotent.
func (c *PipeEnd[S, R]) Close() error { return errors.Join(c.out.Close(), c.in.Close()) }

// marshalWire lets a side be part of a value that is sent. Its receiver has that side as well.
func (c *PipeEnd[S, R]) marshalWire(e *codec.Encoder) error { return marshalPair(e, &c.out, &c.in) }

// unmarshalWire is the counterpart of marshalWire. The error is ErrType if the pipe carries other
// types.
func (c *PipeEnd[S, R]) unmarshalWire(d *codec.Decoder) error { return unmarshalPair(d, &c.out, &c.in) }
