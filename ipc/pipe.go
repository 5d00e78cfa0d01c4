package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
)

// pipeCapacity is the number of values that can be queued per direction.
const pipeCapacity = 64

// A PipeEnd is one end of a bidirectional pipe between processes of a domain. It sends values of
// type S to the other end and receives values of type R. It can be sent to other processes. After
// sending it, the sender should close its own copy, as with the ends of an [os.Pipe]: the other
// side sees the end of the pipe only after all copies of this end are closed.
//
// Unrelated processes can connect by [Listen] and [Dial] instead, which return a [Conn].
//
// All methods may be called from several goroutines. The zero PipeEnd is closed.
type PipeEnd[S, R any] struct {
	out Sender[S]
	in  Receiver[R]
}

// Pipe returns the two ends of a new pipe. End a sends values of type S, for example requests or
// actions, and b replies with values of type R. The caller must close both ends. For a
// unidirectional pipe, use the ends of a [Queue].
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

// Send sends v, and blocks while the pipe is full. v is copied except for its blocks of shared
// memory. The caller must still close v. Send returns [ErrClosed] if the other end is closed or
// its process died. If the deadline of ctx expires while the pipe is full, it returns [ErrFull]
// with [context.DeadlineExceeded].
func (c *PipeEnd[S, R]) Send(ctx context.Context, v S) error { return c.out.Put(ctx, v) }

// TrySend sends v as [PipeEnd.Send] does, or returns [ErrFull] immediately.
func (c *PipeEnd[S, R]) TrySend(v S) error { return c.out.TryPut(v) }

// Recv waits for a value and returns it. The caller must close its shared memory. Recv returns
// [ErrClosed] once all values were received and the other end is closed or its process died. If
// the deadline of ctx expires first, it returns [ErrEmpty] with [context.DeadlineExceeded].
func (c *PipeEnd[S, R]) Recv(ctx context.Context) (R, error) { return c.in.Get(ctx) }

// TryRecv returns the next value, or [ErrEmpty] immediately. The caller must close the value's
// shared memory. It returns [ErrClosed] like [PipeEnd.Recv].
func (c *PipeEnd[S, R]) TryRecv() (R, error) { return c.in.TryGet() }

// All returns an iterator over received values, which ends when the other end is closed or its
// process died. An error is yielded once and ends the iteration. After a break, another loop may
// continue with the next value.
func (c *PipeEnd[S, R]) All(ctx context.Context) iter.Seq2[R, error] { return c.in.All(ctx) }

// Poll blocks until Recv would not block: a value is queued, or the other end is closed. It then
// returns nil. If ctx is done first, it returns the error of ctx, with [ErrEmpty] if the deadline
// has expired.
func (c *PipeEnd[S, R]) Poll(ctx context.Context) error { return c.in.Poll(ctx) }

// Len returns the number of values that can be received without blocking, or 0 if c is closed.
func (c *PipeEnd[S, R]) Len() int { return c.in.Len() }

// Close closes this end in this process. It is idempotent.
func (c *PipeEnd[S, R]) Close() error { return errors.Join(c.out.Close(), c.in.Close()) }

// marshalWire encodes references to the end. The receiver gets its own copy of the end.
func (c *PipeEnd[S, R]) marshalWire(e *codec.Encoder) error { return marshalPair(e, &c.out, &c.in) }

// unmarshalWire decodes a PipeEnd. It returns [ErrType] if an element type differs.
func (c *PipeEnd[S, R]) unmarshalWire(d *codec.Decoder) error { return unmarshalPair(d, &c.out, &c.in) }
