package ipc

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/wire"
)

// A SimpleQueue is a queue with four methods: Python's, but that a put never waits for a reader. It
// travels like a Queue, and whoever has it has both ends. The zero SimpleQueue is closed.
type SimpleQueue[T any] struct{ q Queue[T] }

// NewSimpleQueue makes a queue. The caller closes it.
func NewSimpleQueue[T any]() (*SimpleQueue[T], error) {
	q, err := NewUnbounded[T]()
	if err != nil {
		return nil, fmt.Errorf("simple queue: %w", err)
	}
	return &SimpleQueue[T]{*q}, nil
}

// Put puts v; see Sender.Put.
func (s *SimpleQueue[T]) Put(ctx context.Context, v T) error { return s.q.Put(ctx, v) }

// Get takes the oldest value and waits while there is none; see Receiver.Get.
func (s *SimpleQueue[T]) Get(ctx context.Context) (T, error) { return s.q.Get(ctx) }

// Empty reports whether no value waits, which may be otherwise by the time it returns.
func (s *SimpleQueue[T]) Empty() bool { return s.q.receiver.end.empty() }

// Poll waits until a Get would not; see Receiver.Poll.
func (s *SimpleQueue[T]) Poll(ctx context.Context) error { return s.q.Poll(ctx) }

// Close closes the queue in this process. It is idempotent.
func (s *SimpleQueue[T]) Close() error { return s.q.Close() }

// MarshalWire lets a queue be part of a value that is sent. Its receiver has both ends.
func (s *SimpleQueue[T]) MarshalWire(e *wire.Encoder) error { return s.q.MarshalWire(e) }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if the queue carries
// another type.
func (s *SimpleQueue[T]) UnmarshalWire(d *wire.Decoder) error { return s.q.UnmarshalWire(d) }
