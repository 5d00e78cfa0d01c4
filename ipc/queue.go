package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Queue is both ends of a first-in-first-out queue of values of type T, for any number of senders
// and receivers in any processes of the domain. Each value is received once, and the values of one
// sender in their order. Receivers that wait in several processes are woken in turns.
//
// A process that has a *Queue has both ends. Give a Sender to those that only put and a Receiver to
// those that only get: then receivers learn that all senders are gone, also when those were killed.
//
// When the last receiving end in any process or message is gone, no value can be received any more:
// the queue lets go of those that wait in it, and of what they hold. A queue is never freed while a
// message in it holds its receiving end.
//
// Its methods may be called by several goroutines. The zero Queue is closed.
type Queue[T any] struct {
	sender   Sender[T]
	receiver Receiver[T]
}

// join makes each end keep the other one from the garbage collector: a process that has kept only
// the Sender of its Queue has not closed the Receiver.
func (q *Queue[T]) join() {
	q.sender.end.other, q.receiver.end.other = q.receiver.end, q.sender.end
}

// QueueOptions describe a queue. The zero value is an unbounded one.
type QueueOptions struct {
	// Capacity is the number of values that may wait, at most 2^30. 0 means as many as MaxBytes has
	// room for, and memory is taken when they come.
	Capacity int
	// MaxBytes limits the memory of a queue whose Capacity is 0: 256 bytes a value, besides the
	// shared memory that it holds and what of it does not fit into 200 bytes. 0 means 1 GiB, about
	// 4 million values. Where that is more than a 256th of the addresses that are left, it means a
	// half, a quarter and so on, down to 16 MiB: 512 MiB for the first on a machine with 16 GiB.
	MaxBytes int64
	// Policy is what a put does while the queue is full.
	Policy Policy
}

const (
	mostMaxBytes  = 1 << 30 // by default
	leastMaxBytes = 16 << 20
	queuesOfSpace = 256
	maxCapacity   = 1 << 30 // of a ring
)

// NewQueue makes a queue in which capacity values may wait; with 0 puts do not wait, as with
// Python's Queue(), and the queue grows up to the default of QueueOptions.MaxBytes. The caller
// closes it. The error wraps wire.ErrType if values of type T cannot cross processes, and ErrSize
// for a negative capacity.
func NewQueue[T any](capacity int) (*Queue[T], error) {
	return NewQueueWith[T](QueueOptions{Capacity: capacity})
}

// NewQueueWith makes a queue with options. The caller closes it. The errors are those of NewQueue,
// and ErrSize for options that there cannot be.
func NewQueueWith[T any](opts QueueOptions) (*Queue[T], error) {
	q, err := newEnds[T](opts)
	if err != nil {
		return nil, fmt.Errorf("new queue: %w", err)
	}
	q.join()
	return q, nil
}

// newEnds makes a ring and both of its ends, which are not joined.
func newEnds[T any](opts QueueOptions) (*Queue[T], error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return nil, err
	}
	ro, err := opts.ring()
	if err != nil {
		return nil, err
	}
	send, recv, err := makeEnds(ro, elemName[T](), opts.Policy)
	if err != nil {
		return nil, err
	}
	return &Queue[T]{Sender[T]{send, plan}, Receiver[T]{recv, plan}}, nil
}

func makeEnds(ro arena.RingOptions, elem string, policy Policy) (send, recv *end, err error) {
	d, err := arena.Default()
	if err != nil {
		return nil, nil, err
	}
	if ro.Capacity == 0 {
		ro.Capacity = int(defaultMaxBytes(d.SpaceLeft()) / arena.SlotSize)
	}
	ro.Label = shortName(elem)
	ring, senders, receivers, err := d.NewRing(ro)
	if err != nil {
		return nil, nil, err
	}
	h := ring.Handle()
	in, out := newPort(d, h, receivers, elem), newPort(d, h, senders, elem)
	out.ring, out.view, out.policy = ring, ring, policy
	if err := d.Retain(h); err != nil {
		return nil, nil, errors.Join(err, d.Release(receivers), out.close())
	}
	if err := in.open(); err != nil {
		return nil, nil, errors.Join(err, out.close())
	}
	return newEnd(out), newEnd(in), nil
}

// defaultMaxBytes is for a domain that has so many addresses left. A queue takes them when it is
// made, and memory only later, so a queue for each of many clients must not take all.
func defaultMaxBytes(left int64) int64 {
	n := int64(mostMaxBytes)
	for n > leastMaxBytes && n > left/queuesOfSpace {
		n /= 2
	}
	return n
}

func (o QueueOptions) ring() (arena.RingOptions, error) {
	switch {
	case o.Capacity < 0 || o.Capacity > maxCapacity || o.MaxBytes/arena.SlotSize > maxCapacity:
		return arena.RingOptions{}, fmt.Errorf("capacity %d, or %d bytes: %w: want 0 to %d values", o.Capacity,
			o.MaxBytes, ErrSize, maxCapacity)
	case o.MaxBytes < 0 || o.MaxBytes != 0 && o.MaxBytes < arena.SlotSize:
		return arena.RingOptions{}, fmt.Errorf("MaxBytes %d: %w: want at least %d", o.MaxBytes, ErrSize, arena.SlotSize)
	case o.Policy > DropOldest:
		return arena.RingOptions{}, fmt.Errorf("%w: unknown %v", ErrSize, o.Policy)
	case o.Capacity != 0:
		return arena.RingOptions{Capacity: o.Capacity}, nil
	}
	return arena.RingOptions{Capacity: int(o.MaxBytes / arena.SlotSize), Grow: true}, nil
}

// Sender returns the queue's sending end. To close it is to say that this process does not put any
// more. To send it gives the process that receives it an end of its own.
func (q *Queue[T]) Sender() *Sender[T] {
	s := q.sender
	return &s
}

// Receiver returns the queue's receiving end. To close it is to say that this process does not get
// any more. To send it gives the process that receives it an end of its own.
func (q *Queue[T]) Receiver() *Receiver[T] {
	r := q.receiver
	return &r
}

// Put puts v and waits while the queue is full. Everything else is as with [Sender.Put].
func (q *Queue[T]) Put(ctx context.Context, v T) error { return q.sender.Put(ctx, v) }

// TryPut puts v, or returns ErrFull at once. Everything else is as with [Sender.TryPut].
func (q *Queue[T]) TryPut(v T) error { return q.sender.TryPut(v) }

// PutN puts the values one after the other and returns how many it has put. Everything else is as
// with [Sender.PutN].
func (q *Queue[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	return q.sender.PutN(ctx, vs)
}

// Finish ends the queue for every sender: puts return ErrClosed, and so do gets once the queue is
// empty.
func (q *Queue[T]) Finish() error { return q.sender.Finish() }

// Get takes the oldest value and waits while the queue is empty. The caller must close the shared
// memory that the value holds. The errors are those of [Receiver.Get].
func (q *Queue[T]) Get(ctx context.Context) (T, error) { return q.receiver.Get(ctx) }

// TryGet takes the oldest value, or returns ErrEmpty at once. Everything else is as with
// [Receiver.TryGet].
func (q *Queue[T]) TryGet() (T, error) { return q.receiver.TryGet() }

// GetN waits for a value and takes as many as there are, up to len(vs), into vs. It returns how
// many values it took, at least 1 if err is nil. If vs is empty, it returns 0 at once.
func (q *Queue[T]) GetN(ctx context.Context, vs []T) (n int, err error) {
	return q.receiver.GetN(ctx, vs)
}

// All yields the values one after the other, until the queue is empty and no put can follow. An
// error is yielded once and ends the loop. Another loop may continue where one broke off.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] { return q.receiver.All(ctx) }

// Poll waits until a Get would not wait. Everything else is as with [Receiver.Poll].
func (q *Queue[T]) Poll(ctx context.Context) error { return q.receiver.Poll(ctx) }

// Len returns the number of values that wait, 0 if the receiving end is closed.
func (q *Queue[T]) Len() int { return q.receiver.Len() }

// Cap returns the number of values for which there is room.
func (q *Queue[T]) Cap() int { return q.receiver.Cap() }

// Close closes both ends in this process; other processes keep theirs. Close is idempotent.
func (q *Queue[T]) Close() error { return errors.Join(q.sender.Close(), q.receiver.Close()) }

// marshalWire lets a queue be part of a value that is sent. Its receiver has both ends.
func (q *Queue[T]) marshalWire(e *codec.Encoder) error { return marshalPair(e, &q.sender, &q.receiver) }

// unmarshalWire is the counterpart of marshalWire. The error is ErrType if the queue carries
// another type.
func (q *Queue[T]) unmarshalWire(d *codec.Decoder) error {
	if err := unmarshalPair(d, &q.sender, &q.receiver); err != nil {
		return err
	}
	q.join()
	return nil
}

// pairTags are those of [Sender, Receiver].
var pairTags = &codec.Tags{Type: "pair of a queue's ends", Fields: []int{2}}

func marshalPair[S, R any](e *codec.Encoder, out *Sender[S], in *Receiver[R]) error {
	e.Tag(pairTags, 0)
	return errors.Join(out.marshalWire(e), in.marshalWire(e))
}

func unmarshalPair[S, R any](d *codec.Decoder, out *Sender[S], in *Receiver[R]) error {
	if err := d.OnlyTag(pairTags); err != nil {
		return err
	}
	if err := out.unmarshalWire(d); err != nil {
		return err
	}
	return in.unmarshalWire(d)
}
