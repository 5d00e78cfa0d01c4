package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/wire"
)

// A Queue is both ends of a first-in-first-out queue of values of type T, for any number of senders
// and receivers in any processes of the domain. Each value is received once, and the values of one
// sender in their order.
//
// A process that has a *Queue has both ends. Give those that only put a Sender and those that only
// get a Receiver: then receivers learn that all senders are gone, also when those were killed.
//
// A queue that is left with a message in it that holds the queue itself is never freed.
//
// Its methods may be called by several goroutines. The zero Queue is closed.
type Queue[T any] struct {
	send Sender[T]
	recv Receiver[T]
}

// QueueOptions describe a queue. The zero value is an unbounded one.
type QueueOptions struct {
	// Capacity is the number of values that may wait, at most 2^30. 0 means as many as MaxBytes has
	// room for, and memory is taken when they come.
	Capacity int
	// MaxBytes limits the memory of a queue whose Capacity is 0: 256 bytes a value, besides the
	// shared memory that it holds and what of it does not fit into 200 bytes. 0 means 1 GiB, about
	// 4 million values.
	MaxBytes int64
	// Policy is what a put does while the queue is full.
	Policy Policy
}

const (
	defaultMaxBytes = 1 << 30
	maxCapacity     = 1 << 30 // of a ring
)

// NewQueue makes a queue in which capacity values may wait, at least 1. The caller closes it. The
// error wraps wire.ErrType if values of type T cannot cross processes, and ErrSize for another
// capacity.
func NewQueue[T any](capacity int) (*Queue[T], error) {
	if capacity < 1 {
		return nil, fmt.Errorf("new queue of capacity %d: %w: want at least 1, or NewUnbounded", capacity, ErrSize)
	}
	return NewQueueWith[T](QueueOptions{Capacity: capacity})
}

// NewUnbounded makes a queue whose puts do not wait: Python's Queue(). It grows up to the default
// of QueueOptions.MaxBytes; before that, a put returns shm.ErrNoSpace if the domain's budget is
// used up.
func NewUnbounded[T any]() (*Queue[T], error) { return NewQueueWith[T](QueueOptions{}) }

// NewQueueWith makes a queue with options.
func NewQueueWith[T any](opts QueueOptions) (*Queue[T], error) {
	plan, err := wire.PlanOf[T]()
	if err != nil {
		return nil, fmt.Errorf("new queue: %w", err)
	}
	send, recv, err := newEnds(opts, elemName[T]())
	if err != nil {
		return nil, fmt.Errorf("new queue: %w", err)
	}
	return &Queue[T]{Sender[T]{send, plan}, Receiver[T]{recv, plan}}, nil
}

// newEnds makes a ring and both of its ends.
func newEnds(opts QueueOptions, elem string) (send, recv *end, err error) {
	ro, err := opts.ring()
	if err != nil {
		return nil, nil, err
	}
	return makeEnds(ro, elem, opts.Policy)
}

func makeEnds(ro shm.RingOptions, elem string, policy Policy) (send, recv *end, err error) {
	d, err := shm.Default()
	if err != nil {
		return nil, nil, err
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

func (o QueueOptions) ring() (shm.RingOptions, error) {
	switch {
	case o.Capacity < 0 || o.Capacity > maxCapacity || o.MaxBytes/shm.SlotSize > maxCapacity:
		return shm.RingOptions{}, fmt.Errorf("capacity %d, or %d bytes: %w: want 0 to %d values", o.Capacity,
			o.MaxBytes, ErrSize, maxCapacity)
	case o.MaxBytes < 0 || o.MaxBytes != 0 && o.MaxBytes < shm.SlotSize:
		return shm.RingOptions{}, fmt.Errorf("MaxBytes %d: %w: want at least %d", o.MaxBytes, ErrSize, shm.SlotSize)
	case o.Policy > DropOldest:
		return shm.RingOptions{}, fmt.Errorf("%w: unknown %v", ErrSize, o.Policy)
	case o.Capacity != 0:
		return shm.RingOptions{Capacity: o.Capacity}, nil
	case o.MaxBytes == 0:
		o.MaxBytes = defaultMaxBytes
	}
	return shm.RingOptions{Capacity: int(o.MaxBytes / shm.SlotSize), Grow: true}, nil
}

// Sender returns the queue's sending end. It is the queue's own: to close it, here, is to say that
// the process does not put any more, and to send it gives the receiver an end of its own.
func (q *Queue[T]) Sender() *Sender[T] { return &q.send }

// Receiver returns the queue's receiving end; see Sender.
func (q *Queue[T]) Receiver() *Receiver[T] { return &q.recv }

// Put is Sender.Put.
func (q *Queue[T]) Put(ctx context.Context, v T) error { return q.send.Put(ctx, v) }

// TryPut is Sender.TryPut.
func (q *Queue[T]) TryPut(v T) error { return q.send.TryPut(v) }

// PutN is Sender.PutN.
func (q *Queue[T]) PutN(ctx context.Context, vs []T) (n int, err error) { return q.send.PutN(ctx, vs) }

// Finish is Sender.Finish.
func (q *Queue[T]) Finish() error { return q.send.Finish() }

// Get is Receiver.Get.
func (q *Queue[T]) Get(ctx context.Context) (T, error) { return q.recv.Get(ctx) }

// TryGet is Receiver.TryGet.
func (q *Queue[T]) TryGet() (T, error) { return q.recv.TryGet() }

// GetN is Receiver.GetN.
func (q *Queue[T]) GetN(ctx context.Context, vs []T) (n int, err error) { return q.recv.GetN(ctx, vs) }

// All is Receiver.All.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] { return q.recv.All(ctx) }

// Poll is Receiver.Poll.
func (q *Queue[T]) Poll(ctx context.Context) error { return q.recv.Poll(ctx) }

// Len returns the number of values that wait, 0 if q is closed.
func (q *Queue[T]) Len() int { return q.recv.Len() }

// Cap returns the number of values for which there is room.
func (q *Queue[T]) Cap() int { return q.recv.Cap() }

// Close closes both ends. It does not finish the queue for others. Close is idempotent.
func (q *Queue[T]) Close() error { return errors.Join(q.send.Close(), q.recv.Close()) }

// pairTags are those of [Sender, Receiver].
var pairTags = &wire.Tags{Type: "pair of a queue's ends", Fields: []int{2}}

// MarshalWire lets a queue be part of a value that is sent. Its receiver has both ends.
func (q *Queue[T]) MarshalWire(e *wire.Encoder) error {
	e.Tag(pairTags, 0)
	return errors.Join(q.send.MarshalWire(e), q.recv.MarshalWire(e))
}

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if the queue carries
// another type.
func (q *Queue[T]) UnmarshalWire(d *wire.Decoder) error {
	if err := d.OnlyTag(pairTags); err != nil {
		return err
	}
	if err := q.send.UnmarshalWire(d); err != nil {
		return err
	}
	return q.recv.UnmarshalWire(d)
}
