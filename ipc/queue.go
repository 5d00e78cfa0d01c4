package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Queue is a first-in-first-out queue of values of type T, for any number of senders and
// receivers in any processes of the domain. Each value is delivered to one receiver. Values of the
// same sender are delivered in order. Blocked receivers in several processes are woken in turn.
//
// A *Queue holds both ends. Processes that only put should get a [Sender], and processes that only
// get a [Receiver]; then receivers detect that all senders are gone, even if they were killed.
//
// When the last receiving end in all processes and messages is closed, the queued values and their
// shared memory are released. A queue is never freed while one of its own messages contains its
// receiving end.
//
// All methods may be called from several goroutines. The zero Queue is closed.
type Queue[T any] struct {
	sender   Sender[T]
	receiver Receiver[T]
}

// linkEnds makes the two ends of q keep each other reachable. It must be called once for a new
// Queue. Without it, a process that keeps only the Sender of its Queue would close the Receiver
// by garbage collection.
func (q *Queue[T]) linkEnds() {
	q.sender.end.other, q.receiver.end.other = q.receiver.end, q.sender.end
}

// QueueOptions configure a queue. Capacity must be set; the other fields have defaults.
type QueueOptions struct {
	// Capacity is the maximum number of queued values: 1 to 2^30, or [Unbounded]. There is no queue
	// without a buffer, so 0 is an error. The memory of more than about 4,000 slots is allocated
	// when values are put, and then a put may fail with shm.ErrNoSpace.
	Capacity int
	// MaxBytes limits the memory of the slots of an unbounded queue. A slot takes 256 bytes. Shared
	// memory of the values, and encodings of more than 200 bytes, are not included. The default is
	// 1 GiB, about 4 million values. If that exceeds 1/256 of the domain's remaining address space,
	// the default is halved until it fits, down to 16 MiB; on a machine with 16 GiB of memory the
	// first queue gets 512 MiB.
	MaxBytes int64
	// Policy determines the behavior of a put while the queue is full.
	Policy Policy
}

// Unbounded is the capacity of a queue that grows as values are put, up to QueueOptions.MaxBytes. A
// put into it does not block below that limit, as with Python's Queue().
const Unbounded = -1

const (
	mostMaxBytes  = 1 << 30 // default
	leastMaxBytes = 16 << 20
	queuesOfSpace = 256
	maxCapacity   = 1 << 30 // limit of a ring
)

// NewQueue returns a queue with the given capacity: the number of values that can be put before a
// put blocks, or [Unbounded]. The caller must close it. The error wraps wire.ErrType if values of
// type T cannot be sent to other processes. It wraps [ErrSize] if capacity is 0 or out of range.
func NewQueue[T any](capacity int) (*Queue[T], error) {
	return NewQueueWith[T](QueueOptions{Capacity: capacity})
}

// NewQueueWith returns a queue with the given options. The caller must close it. The errors are the
// same as for [NewQueue], and [ErrSize] if an option is out of range.
func NewQueueWith[T any](opts QueueOptions) (*Queue[T], error) {
	q, err := newEnds[T](opts)
	if err != nil {
		return nil, fmt.Errorf("new queue: %w", err)
	}
	q.linkEnds()
	return q, nil
}

// newEnds allocates a ring and returns a Queue of its two ends. The caller must call linkEnds if
// it keeps the Queue, because each end is otherwise closed when it becomes unreachable.
func newEnds[T any](opts QueueOptions) (*Queue[T], error) {
	plan, err := codec.PlanOf[T]()
	if err != nil {
		return nil, err
	}
	ro, err := opts.ringOptions()
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
	if err := in.openRing(); err != nil {
		return nil, nil, errors.Join(err, out.close())
	}
	return newEnd(out), newEnd(in), nil
}

// defaultMaxBytes returns the default of [QueueOptions].MaxBytes, in bytes, for a domain with
// left bytes of free address space. A queue reserves address space when it is made, and
// allocates memory later. A program with one queue per client must not exhaust the address
// space.
func defaultMaxBytes(left int64) int64 {
	n := int64(mostMaxBytes)
	for n > leastMaxBytes && n > left/queuesOfSpace {
		n /= 2
	}
	return n
}

func (o QueueOptions) ringOptions() (arena.RingOptions, error) {
	switch {
	case o.Capacity == 0 || o.Capacity < Unbounded || o.Capacity > maxCapacity:
		return arena.RingOptions{}, fmt.Errorf("capacity %d: %w: want 1 to %d values, or ipc.Unbounded", o.Capacity,
			ErrSize, maxCapacity)
	case o.MaxBytes < 0 || o.MaxBytes != 0 && o.MaxBytes < arena.SlotSize || o.MaxBytes/arena.SlotSize > maxCapacity:
		return arena.RingOptions{}, fmt.Errorf("MaxBytes %d: %w: want %d to %d", o.MaxBytes, ErrSize, arena.SlotSize,
			maxCapacity*arena.SlotSize)
	case o.Policy > DropOldest:
		return arena.RingOptions{},
			fmt.Errorf("unknown %[2]v: %[1]w: want Block, Fail or DropOldest", ErrSize, o.Policy)
	case o.Capacity != Unbounded:
		return arena.RingOptions{Capacity: o.Capacity}, nil
	}
	return arena.RingOptions{Capacity: int(o.MaxBytes / arena.SlotSize), Grow: true}, nil
}

// Sender returns the queue's sending end. It is the same end in every call and is also closed by
// [Queue.Close]; closing it closes the sending end of q and declares that this process does not
// put any more values. For an independent end, use [Sender.Clone]. A process that receives it
// gets its own end.
func (q *Queue[T]) Sender() *Sender[T] {
	s := q.sender
	return &s
}

// Receiver returns the queue's receiving end. It is the same end in every call and is also
// closed by [Queue.Close]; closing it closes the receiving end of q and declares that this
// process does not get any more values. For an independent end, use [Receiver.Clone]. A process
// that receives it gets its own end.
func (q *Queue[T]) Receiver() *Receiver[T] {
	r := q.receiver
	return &r
}

// Put puts v, and blocks while the queue is full. For details see [Sender.Put].
func (q *Queue[T]) Put(ctx context.Context, v T) error { return q.sender.Put(ctx, v) }

// TryPut puts v, or returns [ErrFull] immediately. For details see [Sender.TryPut].
func (q *Queue[T]) TryPut(v T) error { return q.sender.TryPut(v) }

// PutN puts the values in order and returns the number of values put. For details see
// [Sender.PutN].
func (q *Queue[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	return q.sender.PutN(ctx, vs)
}

// Finish closes the queue for all senders of all processes: from then on Put returns
// [ErrClosed], and Get returns it once the queue is empty.
func (q *Queue[T]) Finish() error { return q.sender.Finish() }

// Get takes the oldest value, and blocks while the queue is empty. The caller must close the
// value's shared memory. The errors are the same as for [Receiver.Get].
func (q *Queue[T]) Get(ctx context.Context) (T, error) { return q.receiver.Get(ctx) }

// TryGet takes the oldest value, or returns [ErrEmpty] immediately. For details see
// [Receiver.TryGet].
func (q *Queue[T]) TryGet() (T, error) { return q.receiver.TryGet() }

// GetN waits for a value, and takes up to len(vs) available values into vs. It returns the
// number of values taken, which is at least 1 if err is nil. If vs is empty, it returns 0
// immediately. The caller must close the values' shared memory. For errors see [Receiver.GetN].
func (q *Queue[T]) GetN(ctx context.Context, vs []T) (n int, err error) {
	return q.receiver.GetN(ctx, vs)
}

// All returns an iterator over received values, which ends when the queue is empty and no put can
// follow. An error is yielded once and ends the iteration. After a break, another loop may continue
// with the next value.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] { return q.receiver.All(ctx) }

// Poll blocks until Get would not block. For details see [Receiver.Poll].
func (q *Queue[T]) Poll(ctx context.Context) error { return q.receiver.Poll(ctx) }

// Len returns the number of queued values, or 0 if the receiving end is closed.
func (q *Queue[T]) Len() int { return q.receiver.Len() }

// Cap returns the queue's capacity in values.
func (q *Queue[T]) Cap() int { return q.receiver.Cap() }

// Close closes both ends in this process. The ends of other processes remain open. Close is
// idempotent.
func (q *Queue[T]) Close() error { return errors.Join(q.sender.Close(), q.receiver.Close()) }

// marshalWire encodes references to both ends. The receiver gets its own ends.
func (q *Queue[T]) marshalWire(e *codec.Encoder) error { return marshalPair(e, &q.sender, &q.receiver) }

// unmarshalWire decodes a Queue. It returns [ErrType] if the element type differs.
func (q *Queue[T]) unmarshalWire(d *codec.Decoder) error {
	if err := unmarshalPair(d, &q.sender, &q.receiver); err != nil {
		return err
	}
	q.linkEnds()
	return nil
}

// pairTags describes the encoding: [Sender, Receiver].
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
