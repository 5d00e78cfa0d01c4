package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A Receiver is the receiving end of a queue. It can be sent to other processes. Each value is
// delivered to one receiver. All methods may be called from several goroutines. The zero Receiver
// is closed.
type Receiver[T any] struct {
	end  *end
	plan *codec.Plan[T]
}

// Get takes the oldest value, and blocks while the queue is empty. The caller must close the
// value's shared memory. The value is lost if this process dies before processing it.
// [Receiver.Lease] keeps it in the queue until it is acknowledged.
//
// Get returns [ErrClosed] once the queue is empty and no put can follow. It returns [ErrEmpty] with
// [context.DeadlineExceeded] if the deadline of ctx expires. Any other error means that a message
// was taken but could not be decoded.
func (r *Receiver[T]) Get(ctx context.Context) (T, error) {
	alone, err := r.end.beginOpAlone()
	if err != nil {
		var zero T
		return zero, err
	}
	defer r.end.endOp()
	in := r.end.getIncoming(alone)
	v, err := r.getValue(ctx, in)
	r.end.freeIncoming(in)
	return v, err
}

// TryGet takes the oldest value, or returns [ErrEmpty] immediately. The caller must close the
// value's shared memory. It finds every value put before the call. It returns [ErrClosed] once
// the queue is empty and no put can follow. If another process is stopped in the middle of a
// put, TryGet waits for it and returns [context.DeadlineExceeded] after a second.
func (r *Receiver[T]) TryGet() (T, error) {
	alone, err := r.end.beginOpAlone()
	if err != nil {
		var zero T
		return zero, err
	}
	defer r.end.endOp()
	in := r.end.getIncoming(alone)
	v, err := r.tryGetValue(in)
	r.end.freeIncoming(in)
	return v, err
}

// GetN waits for a value, and takes up to len(vs) available values into vs. It returns the
// number n of values in vs, which is at least 1 if err is nil. If err is not nil, n may still be
// greater than 0, for example because a message could not be decoded, and the caller must use
// vs[:n]. If vs is empty, it returns 0 immediately. The caller must close the values' shared
// memory. The errors are the same as for [Receiver.Get].
func (r *Receiver[T]) GetN(ctx context.Context, vs []T) (n int, err error) {
	alone, err := r.end.beginOpAlone()
	if err != nil {
		return 0, err
	}
	defer r.end.endOp()
	if len(vs) == 0 {
		return 0, nil
	}
	in := r.end.getIncoming(alone)
	defer r.end.freeIncoming(in)
	for err == nil && n < len(vs) {
		if ctx.Err() == nil && r.plan.Plain() {
			var k int
			if k, err = r.tryGetN(in, vs[n:]); k > 0 || err != nil {
				n += k
				continue
			}
		}
		if n == 0 {
			vs[0], err = r.getValue(ctx, in)
		} else {
			vs[n], err = r.tryGetValue(in)
		}
		if err == nil {
			n++
		}
	}
	if n > 0 && (err == ErrEmpty || errors.Is(err, ErrClosed)) {
		err = nil
	}
	return n, err
}

// tryGetN takes up to len(vs) values in one operation, without blocking, and returns the number
// of values in vs. It returns 0 and a nil error if the next value needs [Receiver.getValue], for
// example because it has blocks. If a message cannot be decoded, it is lost, and the error comes
// with the values of the others.
func (r *Receiver[T]) tryGetN(in *incoming, vs []T) (n int, err error) {
	in.batch.Reset()
	if _, err := r.end.ring.TryGetBatch(&in.batch, len(vs)); err != nil {
		return 0, shmError(context.Background(), "get", err, ErrEmpty)
	}
	if n, err = decodeBatch(in, r.plan, vs); err != nil {
		err = fmt.Errorf("get: %w", err)
	}
	return n, err
}

func (r *Receiver[T]) getValue(ctx context.Context, in *incoming) (v T, err error) {
	if err := r.getMessage(ctx, in); err != nil {
		return v, err
	}
	return r.decodeMessage(in)
}

// getMessage waits for a message, takes it from the queue and stores it in in. The caller must
// release the message by decodeMessage, endDecode or Discard. The errors are the same as for
// [Receiver.Get].
func (r *Receiver[T]) getMessage(ctx context.Context, in *incoming) error {
	if ctx.Err() == context.Canceled { // after a deadline, an available message is still taken
		return contextError(ctx, "get", ErrEmpty)
	}
	if err := r.end.ring.Get(ctx, &in.Message); err != nil {
		return shmError(ctx, "get", err, ErrEmpty)
	}
	return nil
}

func (r *Receiver[T]) tryGetValue(in *incoming) (v T, err error) {
	if err := r.end.ring.TryGet(&in.Message); err != nil {
		return v, shmError(context.Background(), "get", err, ErrEmpty)
	}
	return r.decodeMessage(in)
}

func (r *Receiver[T]) decodeMessage(in *incoming) (T, error) {
	v, err := decodeMessage(in, r.plan)
	if err != nil {
		return v, fmt.Errorf("get: %w", err)
	}
	return v, nil
}

// All returns an iterator over received values, which ends when the queue is empty and no put
// can follow. The loop body must close the value's shared memory. An error, such as the error of
// ctx, is yielded once and ends the iteration. After a break, another loop may continue with the
// next value.
func (r *Receiver[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := r.Get(ctx)
			if errors.Is(err, ErrClosed) || !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// Poll blocks until Get would not block: a value is queued, which another receiver may take first,
// or none can follow. It then returns nil. If ctx is done first, it returns the error of ctx, with
// [ErrEmpty] if the deadline has expired. It returns [ErrClosed] if r is closed.
func (r *Receiver[T]) Poll(ctx context.Context) error {
	if err := r.end.beginOp(); err != nil {
		return err
	}
	defer r.end.endOp()
	return shmError(ctx, "poll", r.end.ring.Await(ctx), ErrEmpty)
}

// Len returns the number of queued values, or 0 if r is closed.
func (r *Receiver[T]) Len() int { return r.end.len() }

// Cap returns the queue's capacity in values.
func (r *Receiver[T]) Cap() int { return r.end.cap() }

// Clone returns another Receiver of the same queue. The caller must close it separately.
func (r *Receiver[T]) Clone() (*Receiver[T], error) {
	e, err := r.end.clone()
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{e, r.plan}, nil
}

// Close closes this end. When the last receiving end in all processes is closed, puts return
// [ErrClosed], and the queued values are released with their shared memory and their ends. Blocked
// operations of this process return ErrClosed. Close is idempotent. The ends of a process that dies
// are closed.
func (r *Receiver[T]) Close() error { return r.end.close() }

// marshalWire encodes a reference to the end. The receiving process gets its own end.
func (r *Receiver[T]) marshalWire(e *codec.Encoder) error { return r.end.marshal(e) }

// unmarshalWire decodes a Receiver. It returns [ErrType] if the element type differs.
func (r *Receiver[T]) unmarshalWire(d *codec.Decoder) (err error) {
	if r.plan, err = codec.PlanOf[T](); err != nil {
		return err
	}
	r.end, err = unmarshalEnd(d, elemName[T](), receiving)
	return err
}
