package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
)

// A Receiver is the receiving end of a queue. It travels to other processes; each value goes to one
// receiver. Its methods may be called by several goroutines. The zero Receiver is closed.
type Receiver[T any] struct {
	end  *end
	plan *codec.Plan[T]
}

// Get takes the oldest value and waits while the queue is empty. The caller must close the shared
// memory that the value holds. The value is lost if this process dies before it is processed:
// [Receiver.Lease] keeps it in the queue until then.
//
// The error is ErrClosed once the queue is empty and no put can follow; ErrEmpty and
// context.DeadlineExceeded if ctx had a deadline. Any other error means that one message was taken
// and could not be read.
func (r *Receiver[T]) Get(ctx context.Context) (T, error) {
	alone, err := r.end.enterAlone()
	if err != nil {
		var zero T
		return zero, err
	}
	defer r.end.leave()
	in := r.end.incoming(alone)
	v, err := r.get(ctx, in)
	r.end.freeIncoming(in)
	return v, err
}

// TryGet takes the oldest value, or returns ErrEmpty at once. A value whose put has returned before
// the call is found. A sender that is in the middle of a put is waited for, for a second if its
// process is stopped; the error is context.DeadlineExceeded then.
func (r *Receiver[T]) TryGet() (T, error) {
	alone, err := r.end.enterAlone()
	if err != nil {
		var zero T
		return zero, err
	}
	defer r.end.leave()
	in := r.end.incoming(alone)
	v, err := r.tryGet(in)
	r.end.freeIncoming(in)
	return v, err
}

// GetN waits for a value and takes as many as there are, up to len(vs), into vs. It returns how
// many values it took, at least 1 if err is nil. If vs is empty, it returns 0 at once.
func (r *Receiver[T]) GetN(ctx context.Context, vs []T) (n int, err error) {
	alone, err := r.end.enterAlone()
	if err != nil {
		return 0, err
	}
	defer r.end.leave()
	if len(vs) == 0 {
		return 0, nil
	}
	in := r.end.incoming(alone)
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
			vs[0], err = r.get(ctx, in)
		} else {
			vs[n], err = r.tryGet(in)
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

// tryGetN takes the next values together, none where get has to see.
func (r *Receiver[T]) tryGetN(in *incoming, vs []T) (n int, err error) {
	in.batch.Reset()
	if _, err := r.end.ring.TryGetBatch(&in.batch, len(vs)); err != nil {
		return 0, shmError(context.Background(), "get", err, ErrEmpty)
	}
	if n, err = readN(in, r.plan, vs); err != nil {
		err = fmt.Errorf("get: %w", err)
	}
	return n, err
}

func (r *Receiver[T]) get(ctx context.Context, in *incoming) (v T, err error) {
	if err := r.take(ctx, in); err != nil {
		return v, err
	}
	return r.read(in)
}

// take waits for a message.
func (r *Receiver[T]) take(ctx context.Context, in *incoming) error {
	if ctx.Err() == context.Canceled { // with a deadline that is over it takes what is there: ErrEmpty is true
		return contextError(ctx, "get", ErrEmpty)
	}
	if err := r.end.ring.Get(ctx, &in.Message); err != nil {
		return shmError(ctx, "get", err, ErrEmpty)
	}
	return nil
}

func (r *Receiver[T]) tryGet(in *incoming) (v T, err error) {
	if err := r.end.ring.TryGet(&in.Message); err != nil {
		return v, shmError(context.Background(), "get", err, ErrEmpty)
	}
	return r.read(in)
}

func (r *Receiver[T]) read(in *incoming) (T, error) {
	v, err := read(in, r.plan)
	if err != nil {
		return v, fmt.Errorf("get: %w", err)
	}
	return v, nil
}

// All yields the values one after the other, until the queue is empty and no put can follow. An
// error is yielded once and ends the loop. Another loop may continue where one broke off.
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

// Poll waits until a Get would not wait: there is a value, which another receiver may be quicker to
// take, or there will never be one. It returns ErrEmpty and context.DeadlineExceeded if ctx had a
// deadline.
func (r *Receiver[T]) Poll(ctx context.Context) error {
	if err := r.end.enter(); err != nil {
		return err
	}
	defer r.end.leave()
	return shmError(ctx, "poll", r.end.ring.Await(ctx), ErrEmpty)
}

// Len returns the number of values that wait in the queue, 0 if r is closed.
func (r *Receiver[T]) Len() int { return r.end.len() }

// Cap returns the number of values for which the queue has room.
func (r *Receiver[T]) Cap() int { return r.end.cap() }

// Clone returns another Receiver of the same queue, to be closed on its own.
func (r *Receiver[T]) Clone() (*Receiver[T], error) {
	e, err := r.end.clone()
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{e, r.plan}, nil
}

// Close gives the end back. When the last one in any process is closed, puts return ErrClosed, and
// the values that wait are let go of, with the shared memory and the ends that they hold.
// Operations that wait in this process return ErrClosed. Close is idempotent; a process that dies
// closes what it has.
func (r *Receiver[T]) Close() error { return r.end.close() }

// marshalWire lets an end be part of a value that is sent. Its receiver has an end of its own.
func (r *Receiver[T]) marshalWire(e *codec.Encoder) error { return r.end.marshal(e) }

// unmarshalWire is the counterpart of marshalWire. The error is ErrType if the queue carries
// another type.
func (r *Receiver[T]) unmarshalWire(d *codec.Decoder) (err error) {
	if r.plan, err = codec.PlanOf[T](); err != nil {
		return err
	}
	r.end, err = unmarshal(d, elemName[T](), receiving)
	return err
}
