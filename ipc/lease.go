package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// ErrSettled is returned by Ack and Nack of a Lease that was acknowledged or returned before.
var ErrSettled = errors.New("ipc: lease is settled already")

func init() { codec.RegisterError("ipc.ErrSettled", ErrSettled) }

// A Lease is a value of a queue that its receiver has not acknowledged yet. The value is in the
// queue until Ack. It goes back to the queue, before all values that wait there, if the process
// that holds the lease dies or leaves, at Nack, and when the garbage collector finds that the Lease
// is not used any more. So each value is processed at least once, and more than once only if its
// receiver died between its work and Ack.
//
// A receiver may hold any number of leases. Its methods may be called by several goroutines.
type Lease[T any] struct {
	// Value is the received value. The caller must close the shared memory that it holds, as after
	// Get, whether the lease is acknowledged or returned.
	Value T

	claim *claim
}

// claim is the part of a Lease that its cleanup needs.
type claim struct {
	end     *end
	message arena.Claim
	settled atomic.Bool
}

// Lease takes the oldest value as Get does, and leaves it in the queue until it is acknowledged:
// see [Lease]. The caller must end the lease with Ack or Nack.
//
// A leased value keeps its place in a queue of fixed capacity. A put waits while the slot that it
// needs is leased, so the capacity should be several times the number of leases that are held at
// once. As long as a lease is held, receivers of a queue without further puts wait for its end
// instead of returning ErrClosed, since the value may come back. The errors are those of
// [Receiver.Get].
func (r *Receiver[T]) Lease(ctx context.Context) (*Lease[T], error) {
	alone, err := r.end.enterAlone()
	if err != nil {
		return nil, err
	}
	in := r.end.incoming(alone)
	l, err := r.lease(ctx, in)
	r.end.freeIncoming(in)
	if err != nil {
		r.end.leave()
		return nil, err
	}
	r.end.keep() // until the lease ends
	return l, nil
}

func (r *Receiver[T]) lease(ctx context.Context, in *incoming) (*Lease[T], error) {
	if ctx.Err() == context.Canceled {
		return nil, contextError(ctx, "lease", ErrEmpty)
	}
	message, err := r.end.ring.Lease(ctx, &in.Message)
	if err != nil {
		return nil, shmError(ctx, "lease", err, ErrEmpty)
	}
	v, err := read(in, r.plan)
	if err != nil { // no receiver can read it
		return nil, errors.Join(fmt.Errorf("lease: %w", err), r.end.ring.Acknowledge(message))
	}
	l := &Lease[T]{v, &claim{end: r.end, message: message}}
	runtime.AddCleanup(l, func(c *claim) { c.settle("collect", (*arena.Ring).Return) }, l.claim)
	return l, nil
}

// Leases yields one lease after the other, until the queue is empty, no put can follow, and every
// lease of any process has ended. The loop must end each lease with Ack or Nack; one that it does
// not end keeps the loop waiting at the end of the queue. An error is yielded once and ends the
// loop.
func (r *Receiver[T]) Leases(ctx context.Context) iter.Seq2[*Lease[T], error] {
	return func(yield func(*Lease[T], error) bool) {
		for {
			l, err := r.Lease(ctx)
			if errors.Is(err, ErrClosed) || !yield(l, err) || err != nil {
				return
			}
		}
	}
}

// Ack acknowledges the value: it leaves the queue. It returns ErrSettled if the lease was
// acknowledged or returned before, and ErrClosed if the lease was lost because this process has
// left the domain. After context.DeadlineExceeded, which it returns if all operations of this
// process wait for a stopped process for a second, the lease goes on, and Ack may be called again.
func (l *Lease[T]) Ack() error {
	defer runtime.KeepAlive(l)
	return l.claim.settle("acknowledge", (*arena.Ring).Acknowledge)
}

// Nack returns the value to the queue at once: the next receiver gets it, which may be the same
// one. The errors are those of Ack.
func (l *Lease[T]) Nack() error {
	defer runtime.KeepAlive(l)
	return l.claim.settle("return", (*arena.Ring).Return)
}

func (c *claim) settle(op string, f func(*arena.Ring, arena.Claim) error) error {
	if c == nil || c.settled.Swap(true) {
		return fmt.Errorf("%s: %w", op, ErrSettled)
	}
	err := f(c.end.ring, c.message)
	if errors.Is(err, context.DeadlineExceeded) { // every lane of this process waits for a stopped one
		c.settled.Store(false)
		return shmError(context.Background(), op, err, nil)
	}
	c.end.port.drop()
	if err == arena.ErrNotLeased {
		return fmt.Errorf("%s: the lease was lost: %w", op, ErrClosed)
	}
	return shmError(context.Background(), op, err, nil)
}
