package ipc

import (
	"context"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Sender is the sending end of a queue. It can be sent to other processes. While a process holds
// a Sender, receivers of the queue do not get [ErrClosed], unless [Sender.Finish] was called. All
// methods may be called from several goroutines. The zero Sender is closed.
type Sender[T any] struct {
	end  *end
	plan *codec.Plan[T]
}

// Put puts v. While the queue is full, it blocks or acts according to the queue's [Policy]. v is
// copied except for its blocks of shared memory: the message holds its own references to them, and
// the caller must still close v. A tensor that v gives away (see tensor.Tensor.Give) is closed by a
// successful Put; after an error the caller must close it.
//
// Put returns [ErrClosed] if no get can follow, and [ErrFull] with [context.DeadlineExceeded] if
// the deadline of ctx expires. If another process is stopped in the middle of a put or get of the
// same shared memory, Put waits for it as well; then the error is context.DeadlineExceeded alone.
// If Put returns an error, the value was not put.
func (s *Sender[T]) Put(ctx context.Context, v T) error {
	alone, err := s.end.beginOpAlone()
	if err != nil {
		return err
	}
	defer s.end.endOp()
	o := s.end.getOutgoing(alone)
	err = s.sendValue(ctx, o, v, true)
	s.end.freeOutgoing(o)
	return err
}

// TryPut puts v as [Sender.Put] does, or returns [ErrFull] immediately. It finds every slot freed
// by a get before the call. If another process is stopped in the middle of a get from the same
// slot, or of a put or get of the same shared memory, TryPut waits for it and returns
// [context.DeadlineExceeded] after a second.
func (s *Sender[T]) TryPut(v T) error {
	alone, err := s.end.beginOpAlone()
	if err != nil {
		return err
	}
	defer s.end.endOp()
	o := s.end.getOutgoing(alone)
	err = s.sendValue(context.Background(), o, v, false)
	s.end.freeOutgoing(o)
	return err
}

// PutN puts the values in order, as [Sender.Put] does, and returns the number of values put:
// len(vs) if err is nil, and fewer with the error of Put for the next value. Values of other
// senders may be interleaved. Numbers, strings, times, and structs of these are put in batches,
// so if the process is killed during PutN, a prefix of the values may have been put.
func (s *Sender[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	alone, err := s.end.beginOpAlone()
	if err != nil {
		return 0, err
	}
	defer s.end.endOp()
	o := s.end.getOutgoing(alone)
	defer s.end.freeOutgoing(o)
	for n < len(vs) {
		k := s.tryPutN(ctx, o, vs[n:])
		if k == 0 { // no free slot, or the next value cannot be in a batch
			if err := s.sendValue(ctx, o, vs[n], true); err != nil {
				return n, err
			}
			k = 1
		}
		n += k
	}
	return n, nil
}

// tryPutN puts a batch of the first values of vs without blocking, and returns the number of
// values put. It returns 0 if the first value must be put by [Sender.sendValue]: if vs has one
// value only, the queue has room for one at most, ctx is canceled, or the value cannot be in a
// batch.
func (s *Sender[T]) tryPutN(ctx context.Context, o *outgoing, vs []T) int {
	ring := s.end.ring
	most := min(len(vs), arena.MaxBatch, ring.Room())
	if most < 2 || ctx.Err() == context.Canceled || !s.plan.Plain() {
		return 0
	}
	o.enc.Reset(o.buf)
	o.ends = o.ends[:0]
	for _, v := range vs[:most] {
		from := len(o.enc.Message().Body)
		err := s.plan.Encode(&o.enc, v)
		to := len(o.enc.Message().Body)
		if err != nil || to-from > arena.SlotBody {
			break
		}
		o.ends = append(o.ends, to)
	}
	n, _ := ring.TryPutBatch(&arena.Batch{Body: o.enc.Message().Body, Ends: o.ends})
	o.releaseMessage(true)
	return n
}

func (s *Sender[T]) sendValue(ctx context.Context, o *outgoing, v T, wait bool) error {
	if ctx.Err() == context.Canceled { // after a deadline, a free slot is still used
		return contextError(ctx, "put", ErrFull)
	}
	o.enc.Reset(o.buf)
	o.enc.Moves = true
	err := s.plan.Encode(&o.enc, v)
	if err == nil {
		err = shmError(ctx, "put", s.end.sendByPolicy(ctx, o.enc.Message(), wait), ErrFull)
	}
	o.releaseMessage(err == nil)
	runtime.KeepAlive(v) // the message only refers to its blocks until sendByPolicy
	return err
}

// Finish closes the queue for all senders of all processes: from then on Put returns
// [ErrClosed], and Get returns it once the queue is empty.
func (s *Sender[T]) Finish() error {
	if err := s.end.beginOp(); err != nil {
		return err
	}
	defer s.end.endOp()
	s.end.ring.Finish()
	return nil
}

// Len returns the number of queued values, or 0 if s is closed.
func (s *Sender[T]) Len() int { return s.end.len() }

// Cap returns the queue's capacity in values.
func (s *Sender[T]) Cap() int { return s.end.cap() }

// Clone returns another Sender of the same queue, for example for a goroutine that ends
// independently. The caller must close it separately.
func (s *Sender[T]) Clone() (*Sender[T], error) {
	e, err := s.end.clone()
	if err != nil {
		return nil, err
	}
	return &Sender[T]{e, s.plan}, nil
}

// Close closes this end. When the last sending end in all processes is closed, receivers drain the
// queue and then get [ErrClosed]. Blocked operations of this process return ErrClosed. Close is
// idempotent. The ends of a process that dies are closed.
func (s *Sender[T]) Close() error { return s.end.close() }

// marshalWire encodes a reference to the end. The receiving process gets its own end.
func (s *Sender[T]) marshalWire(e *codec.Encoder) error { return s.end.marshal(e) }

// unmarshalWire decodes a Sender. It returns [ErrType] if the element type differs.
func (s *Sender[T]) unmarshalWire(d *codec.Decoder) (err error) {
	if s.plan, err = codec.PlanOf[T](); err != nil {
		return err
	}
	s.end, err = unmarshalEnd(d, elemName[T](), sending)
	return err
}
