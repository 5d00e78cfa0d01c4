package ipc

import (
	"context"
	"runtime"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Sender is the sending end of a queue. It travels to other processes. A process that has a
// Sender keeps the queue open for the receivers. Its methods may be called by several goroutines.
// The zero Sender is closed.
type Sender[T any] struct {
	end  *end
	plan *codec.Plan[T]
}

// Put puts v and waits while the queue is full, or does what the queue's Policy says instead. v is
// copied, but not the blocks of shared memory that it holds: the message holds those blocks, and
// the caller still closes v. A tensor that v gives away (see its method Give) is closed with the
// put, and stays the caller's if there is an error.
//
// The error is ErrClosed if no get can follow; ErrFull and context.DeadlineExceeded if ctx had a
// deadline. Another process that is stopped in the middle of a put or a get of the same shared
// memory is waited for as well; the error is context.DeadlineExceeded alone then. A Put that
// returns an error has put nothing.
func (s *Sender[T]) Put(ctx context.Context, v T) error {
	alone, err := s.end.enterAlone()
	if err != nil {
		return err
	}
	defer s.end.leave()
	o := s.end.outgoing(alone)
	err = s.put(ctx, o, v, true)
	s.end.freeOutgoing(o)
	return err
}

// TryPut puts v as Put does, or returns ErrFull at once. Room that a get has made before the
// call is found. A process that is stopped in the middle of a get from the same slot, or of a
// put or a get of the same shared memory, is waited for, for a second; the error is
// context.DeadlineExceeded then.
func (s *Sender[T]) TryPut(v T) error {
	alone, err := s.end.enterAlone()
	if err != nil {
		return err
	}
	defer s.end.leave()
	o := s.end.outgoing(alone)
	err = s.put(context.Background(), o, v, false)
	s.end.freeOutgoing(o)
	return err
}

// PutN puts the values one after the other, as Put does, and returns how many it has put: all of
// them if err is nil. Values of other senders may come between them. Numbers, strings, instants and
// structs of these go many at a time; so of a process that is killed meanwhile the first of the
// values may be there, and the others are not.
func (s *Sender[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	alone, err := s.end.enterAlone()
	if err != nil {
		return 0, err
	}
	defer s.end.leave()
	o := s.end.outgoing(alone)
	defer s.end.freeOutgoing(o)
	for n < len(vs) {
		k := s.tryPutN(ctx, o, vs[n:])
		if k == 0 { // there is no room, or the next is no value for a batch
			if err := s.put(ctx, o, vs[n], true); err != nil {
				return n, err
			}
			k = 1
		}
		n += k
	}
	return n, nil
}

// tryPutN puts the first of the values together and returns how many: none where put has to see.
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
	o.done(true)
	return n
}

func (s *Sender[T]) put(ctx context.Context, o *outgoing, v T, wait bool) error {
	if ctx.Err() == context.Canceled { // with a deadline that is over it takes the room that there is: ErrFull is true
		return contextError(ctx, "put", ErrFull)
	}
	o.enc.Reset(o.buf)
	o.enc.Moves = true
	err := s.plan.Encode(&o.enc, v)
	if err == nil {
		err = shmError(ctx, "put", s.end.put(ctx, o.enc.Message(), wait), ErrFull)
	}
	o.done(err == nil)
	runtime.KeepAlive(v) // its blocks were only named so far
	return err
}

// Finish ends the queue for every sender: puts return ErrClosed, and so do gets once the queue is
// empty.
func (s *Sender[T]) Finish() error {
	if err := s.end.enter(); err != nil {
		return err
	}
	defer s.end.leave()
	s.end.ring.Finish()
	return nil
}

// Len returns the number of values that wait in the queue, 0 if s is closed.
func (s *Sender[T]) Len() int { return s.end.len() }

// Cap returns the number of values for which the queue has room.
func (s *Sender[T]) Cap() int { return s.end.cap() }

// Clone returns another Sender of the same queue, to be closed on its own: one for each goroutine
// that ends by itself.
func (s *Sender[T]) Clone() (*Sender[T], error) {
	e, err := s.end.clone()
	if err != nil {
		return nil, err
	}
	return &Sender[T]{e, s.plan}, nil
}

// Close gives the end back. When the last one in any process is closed, receivers get what is left
// and then ErrClosed. Operations that wait return ErrClosed. Close is idempotent; a process that
// dies closes what it has.
func (s *Sender[T]) Close() error { return s.end.close() }

// marshalWire lets an end be part of a value that is sent. Its receiver has an end of its own.
func (s *Sender[T]) marshalWire(e *codec.Encoder) error { return s.end.marshal(e) }

// unmarshalWire is the counterpart of marshalWire. The error is ErrType if the queue carries
// another type.
func (s *Sender[T]) unmarshalWire(d *codec.Decoder) (err error) {
	if s.plan, err = codec.PlanOf[T](); err != nil {
		return err
	}
	s.end, err = unmarshal(d, elemName[T](), sending)
	return err
}
