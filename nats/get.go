package nats

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/shm"
)

// Next receives the oldest value and waits while the queue is empty. The caller must settle the
// [Delivery], with [Delivery.Ack] for example; otherwise the value is redelivered.
//
// It returns [ErrClosed] once a finished queue is empty. If ctx has a deadline that passes, the
// error wraps [ErrEmpty] and [context.DeadlineExceeded]. A value that cannot be decoded becomes a
// dead letter and Next returns the cause; the caller may call Next again to receive the following
// value.
func (q *Queue[T]) Next(ctx context.Context) (*Delivery[T], error) {
	h, v, err := q.receiveValue(ctx, true)
	if err != nil {
		return nil, err
	}
	return newDelivery(q.work, h, v), nil
}

// receiveValue receives and decodes a value. The caller must acknowledge h or return it to the
// queue. If wait is false, it returns [ErrEmpty] instead of waiting. Other errors are as for
// [Queue.Next].
func (q *Queue[T]) receiveValue(ctx context.Context, wait bool) (h *held, v T, err error) {
	if err := q.checkOpen("get"); err != nil {
		return nil, v, err
	}
	for {
		if ctx.Err() != nil {
			return nil, v, contextError(ctx, "get", ErrEmpty)
		}
		h, err := q.receiveMessage(ctx, wait)
		if err != nil {
			return nil, v, q.convertGetError(ctx, err)
		}
		v, again, err := q.decodeMessage(ctx, h)
		if !again {
			return h, v, err
		}
	}
}

// convertGetError adds the operation to the error of a get without a value. If ctx has ended,
// the result is the error of ctx; it wraps [ErrEmpty] too if a deadline passed.
func (w *work) convertGetError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, ErrEmpty), errors.Is(err, ErrClosed):
		return fmt.Errorf("nats: get: %w", err)
	case ctx.Err() != nil && !errors.Is(err, errCut):
		return contextError(ctx, "get", ErrEmpty)
	}
	return w.wrapError("get", err)
}

// decodeMessage decodes a received message. A message that exceeded the delivery limit becomes a
// dead letter, and decodeMessage returns again = true: the caller must receive another one. A
// value that cannot be decoded becomes a dead letter as well, and decodeMessage returns the
// cause. After another error, such as the end of ctx, the message is back in the queue.
func (q *Queue[T]) decodeMessage(ctx context.Context, h *held) (v T, again bool, err error) {
	h.claimed.Store(true)
	if h.attempt > q.most {
		h.attempt--
		reason := fmt.Sprintf("delivered %d times and not acknowledged", h.attempt)
		if err := q.moveToDeadLetters(ctx, h, reason); err != nil && !errors.Is(err, ErrExpired) {
			q.nakMessage(h, 0)
			return v, false, q.wrapError("get", err)
		}
		return v, true, nil
	}
	v, err = q.decodeChunks(ctx, h.m.Data)
	switch {
	case err == nil:
		return v, false, nil
	case ctx.Err() != nil, errors.Is(err, shm.ErrNoSpace): // not the value's fault
		q.nakMessage(h, 0)
		return v, false, q.wrapError("get", err)
	case errors.Is(err, codec.ErrFormat), errors.Is(err, codec.ErrTooLong), errors.Is(err, codec.ErrUnknownType),
		errors.Is(err, errMissing), errors.Is(err, shm.ErrTooLarge):
		if dead := q.moveToDeadLetters(ctx, h, err.Error()); dead != nil {
			err = errors.Join(err, dead)
		}
		return v, false, fmt.Errorf("nats: get: %w", err)
	}
	q.nakMessage(h, 0)
	return v, false, q.wrapError("get", err)
}

// decodeChunks decodes a value from the payload of a message and from its chunks, if it has any.
// The caller must close the shared memory that the value holds.
func (q *Queue[T]) decodeChunks(ctx context.Context, data []byte) (v T, err error) {
	l, inChunks, err := largeOf(data)
	switch {
	case err != nil:
		return v, err
	case inChunks:
		return decodeLarge(ctx, q.plan, q.large, q.chunkPrefix(), l)
	}
	return decode(q.plan, data)
}

// Get receives the oldest value, waits while the queue is empty, and acknowledges the value before
// it returns. The value is lost if this process dies afterwards. The caller must close the shared
// memory that the value holds. Errors are as for [Queue.Next]. If the error wraps [ErrUncertain],
// the value is returned as well and may be delivered again.
func (q *Queue[T]) Get(ctx context.Context) (T, error) { return q.get(ctx, true) }

// TryGet receives the oldest value as [Queue.Get] does, but returns [ErrEmpty] instead of waiting.
func (q *Queue[T]) TryGet(ctx context.Context) (T, error) { return q.get(ctx, false) }

func (q *Queue[T]) get(ctx context.Context, wait bool) (T, error) {
	h, v, err := q.receiveValue(ctx, wait)
	if err != nil {
		return v, err
	}
	return v, q.uncertainAck("get", q.acknowledgeAll(ctx, []*held{h}))
}

// uncertainAck converts the error of an acknowledgement by a get. The caller has the value in
// any case, so an error always wraps [ErrUncertain]. The result is nil for a nil error.
func (w *work) uncertainAck(op string, err error) error {
	if err != nil && !errors.Is(err, ErrUncertain) {
		err = fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return w.wrapError(op, err)
}

// GetN waits for a value and then receives as many as are available, up to len(vs), into vs. It
// acknowledges them as [Queue.Get] does. It returns the number of values received, at least 1 if
// err is nil. If the error wraps [ErrUncertain], vs[:n] are received and may be delivered again.
// If vs is empty, it returns 0 immediately.
func (q *Queue[T]) GetN(ctx context.Context, vs []T) (n int, err error) {
	if err := q.checkOpen("get"); err != nil || len(vs) == 0 {
		return 0, err
	}
	var taken []*held
	var bad error // error of a value; the values before it are good
	use := func(h *held) bool {
		v, again, err := q.decodeMessage(ctx, h)
		switch {
		case again:
			return true
		case err != nil:
			bad = err
			return false
		}
		vs[n], taken = v, append(taken, h)
		n++
		return true
	}
	for n == 0 {
		if ctx.Err() != nil {
			return 0, contextError(ctx, "get", ErrEmpty)
		}
		err := q.pullAvailable(ctx, len(vs), use)
		if err == nil && bad == nil && n == 0 {
			var h *held
			if h, err = q.receiveMessage(ctx, true); err == nil {
				use(h)
			}
		}
		switch {
		case n > 0:
		case bad != nil:
			return 0, bad
		case err != nil:
			return 0, q.convertGetError(ctx, err)
		}
	}
	return n, q.uncertainAck("get", q.acknowledgeAll(ctx, taken))
}

// Deliveries returns an iterator that calls [Queue.Next] until a finished queue is empty. Each
// Delivery must be settled by the caller. An error is yielded once and ends the loop.
func (q *Queue[T]) Deliveries(ctx context.Context) iter.Seq2[*Delivery[T], error] {
	return func(yield func(*Delivery[T], error) bool) {
		for {
			d, err := q.Next(ctx)
			if errors.Is(err, ErrClosed) || !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// All returns an iterator over the values, until a finished queue is empty. It acknowledges each
// value when the loop continues with the next one. If the body leaves the loop by break, return
// or a panic, or if the process dies, the current value is redelivered. The body must close the
// shared memory that the values hold. An error is yielded once and ends the loop. Another loop
// may then continue with the remaining values.
func (q *Queue[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for d, err := range q.Deliveries(ctx) {
			if err != nil {
				yield(*new(T), err)
				return
			}
			if more, err := d.runBody(ctx, yield); err != nil {
				yield(*new(T), err)
				return
			} else if !more {
				return
			}
		}
	}
}

// runBody calls yield, the loop body, with the value. It acknowledges the value if the body
// returns true, and returns it to the queue otherwise or after a panic. more is the result of
// the body, err the error of the acknowledgement.
func (d *Delivery[T]) runBody(ctx context.Context, yield func(T, error) bool) (more bool, err error) {
	defer func() {
		if !more {
			d.Nak(0)
		}
	}()
	if more = yield(d.Value, nil); more {
		err = d.Ack(ctx)
	}
	return more, err
}
