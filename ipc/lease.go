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

// ErrSettled is returned by Ack and Nack if the lease was already acknowledged or returned.
var ErrSettled = errors.New("ipc: lease is already settled")

func init() { codec.RegisterError("ipc.ErrSettled", ErrSettled) }

// A Lease is a received value that has not been acknowledged yet. The value stays in the queue
// until [Lease.Ack]. It returns to the front of the queue at [Lease.Nack], if the process that
// holds the lease dies or leaves the domain, and when the garbage collector finds that the Lease is
// unreachable. Delivery is therefore at-least-once: a value is processed again only if its receiver
// failed to acknowledge it.
//
// A receiver may hold any number of leases. All methods may be called from several goroutines.
type Lease[T any] struct {
	// Value is the received value. The caller must close its shared memory, as after Get, whether
	// the lease is acknowledged or returned.
	Value T

	claim *claim
}

// A claim is the state of a Lease that its cleanup needs. It is shared by the Lease and the
// cleanup, so that only one of them ends the lease.
type claim struct {
	end     *end
	message arena.Claim
	settled atomic.Bool
}

// Lease waits for the oldest value as [Receiver.Get] does, but leaves it in the queue until it is
// acknowledged; see [Lease]. The caller must end the lease with [Lease.Ack] or [Lease.Nack].
//
// A leased value occupies its slot in a queue of fixed capacity. A put blocks while the slot that
// it needs is leased, so the capacity should be several times the number of leases held at once.
// While a lease is held, receivers of a queue that gets no further puts block instead of returning
// [ErrClosed], because the value may return to the queue. The errors are the same as for Get.
func (r *Receiver[T]) Lease(ctx context.Context) (*Lease[T], error) {
	alone, err := r.end.beginOpAlone()
	if err != nil {
		return nil, err
	}
	in := r.end.getIncoming(alone)
	l, err := r.leaseMessage(ctx, in)
	r.end.freeIncoming(in)
	if err != nil {
		r.end.endOp()
		return nil, err
	}
	r.end.keepHeld() // dropped when the lease ends
	return l, nil
}

func (r *Receiver[T]) leaseMessage(ctx context.Context, in *incoming) (*Lease[T], error) {
	if ctx.Err() == context.Canceled {
		return nil, contextError(ctx, "lease", ErrEmpty)
	}
	message, err := r.end.ring.Lease(ctx, &in.Message)
	if err != nil {
		return nil, shmError(ctx, "lease", err, ErrEmpty)
	}
	v, err := decodeMessage(in, r.plan)
	if err != nil { // no receiver can decode it
		return nil, errors.Join(fmt.Errorf("lease: %w", err), r.end.ring.Acknowledge(message))
	}
	l := &Lease[T]{v, &claim{end: r.end, message: message}}
	runtime.AddCleanup(l, func(c *claim) { c.endLease("collect", (*arena.Ring).Return) }, l.claim)
	return l, nil
}

// Leases returns an iterator over leases. It ends when the queue is empty, no put can follow,
// and all leases of all processes have ended. The loop body must check the error first, because
// the lease is nil then, and must end each lease with Ack or Nack, even if it then leaves the
// loop; an open lease blocks the loop at the end of the queue. An error, such as the cause of
// ctx, is yielded once and ends the iteration.
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

// Ack acknowledges the value, which removes it from the queue. It returns [ErrSettled] if the lease
// was already acknowledged or returned, and [ErrClosed] if this process has left the domain and
// lost the lease. It returns [context.DeadlineExceeded] if all slots for operations of this process
// are blocked by a stopped process for a second; then the lease is still held, and the caller may
// call Ack again.
func (l *Lease[T]) Ack() error {
	defer runtime.KeepAlive(l)
	return l.claim.endLease("acknowledge", (*arena.Ring).Acknowledge)
}

// Nack returns the value to the front of the queue. The next receiver gets it, which may be this
// one. The errors are the same as for [Lease.Ack].
func (l *Lease[T]) Nack() error {
	defer runtime.KeepAlive(l)
	return l.claim.endLease("return", (*arena.Ring).Return)
}

func (c *claim) endLease(op string, f func(*arena.Ring, arena.Claim) error) error {
	if c == nil || c.settled.Swap(true) {
		return fmt.Errorf("%s: %w", op, ErrSettled)
	}
	err := f(c.end.ring, c.message)
	if errors.Is(err, context.DeadlineExceeded) { // all lanes of this process are blocked
		c.settled.Store(false)
		return shmError(context.Background(), op, err, nil)
	}
	c.end.port.dropHeld()
	if err == arena.ErrNotLeased {
		return fmt.Errorf("%s: lease lost: %w", op, ErrClosed)
	}
	return shmError(context.Background(), op, err, nil)
}
