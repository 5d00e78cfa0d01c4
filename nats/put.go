package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Put puts v and waits until the broker has stored it, and before that while the queue is full. v
// is copied, and the caller still closes it.
//
// The error is ErrClosed for a finished queue; ErrFull and context.DeadlineExceeded if ctx had a
// deadline; ErrTooLarge if the queue never has room for v, ErrStorage if the broker has none,
// ErrUnreachable if the connection stays cut. A Put that returns an error has put nothing, unless
// the error wraps ErrUncertain.
func (q *Queue[T]) Put(ctx context.Context, v T) error {
	if err := q.enter("put"); err != nil {
		return err
	}
	_, err := q.put(ctx, q.id(), v, true)
	return q.failed("put", err)
}

// TryPut puts v as Put does, or returns ErrFull where Put would wait for room.
func (q *Queue[T]) TryPut(ctx context.Context, v T) error {
	if err := q.enter("put"); err != nil {
		return err
	}
	_, err := q.put(ctx, q.id(), v, false)
	return q.failed("put", err)
}

// PutOnce puts v as Put does, unless a value was put with that id within the last two minutes. It
// reports whether this call has put v.
func (q *Queue[T]) PutOnce(ctx context.Context, id string, v T) (fresh bool, err error) {
	if err := q.enter("put"); err != nil {
		return false, err
	}
	if id == "" {
		return false, fmt.Errorf("nats: put: %w: an empty id", ErrOptions)
	}
	s, err := q.put(ctx, "once "+id, v, true)
	return err == nil && !s.Duplicate, q.failed("put", err)
}

// failed is the error of an operation of the queue.
func (w *work) failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed), errors.Is(err, ErrFull), errors.Is(err, ErrShared):
		return fmt.Errorf("nats: %s: %w", op, err)
	}
	return hostError(op+" in queue "+w.name, w.c.Host(), err)
}

func (q *Queue[T]) put(ctx context.Context, id string, v T, wait bool) (s stored, err error) {
	if err := ctx.Err(); err != nil {
		return s, ended(ctx, "put", nil)
	}
	o, err := encode(q.plan, v)
	if err == nil {
		s, err = q.store(ctx, id, o, wait)
	}
	o.done(err == nil)
	keep(v)
	return s, err
}

// store stores a value.
func (w *work) store(ctx context.Context, id string, o *outgoing, wait bool) (stored, error) {
	if w.config.MaxBytes > 0 && int64(o.size) > w.config.MaxBytes {
		return stored{}, fmt.Errorf("%w: %d bytes, of %d", ErrTooLarge, o.size, w.config.MaxBytes)
	}
	if o.size <= w.c.mostInline() {
		m := newWrite(w.small(), id, o.payload())
		defer m.release()
		return w.finish(ctx, m, wait)
	}
	if err := w.large.ensure(ctx); err != nil {
		return stored{}, err
	}
	l := large{id: chunkID(w.id())}
	pause := leastPause
	full := func(error) error { return w.full(ctx, &pause, wait) }
	l, err := w.large.put(ctx, w.chunkPrefix(), l.id, o, full)
	var s stored
	if err == nil {
		s, err = w.finish(ctx, newWrite(w.largeOne(l.id), id, l.append(nil)), wait)
	}
	if err == nil {
		if err := w.large.keep(ctx, w.chunkPrefix(), l, o, full, w.named(ctx)); err != nil {
			return s, fmt.Errorf("%w: %w", ErrUncertain, err)
		}
	}
	if unused := err != nil && !errors.Is(err, ErrUncertain) || s.Duplicate && !w.has(ctx, l.id); unused {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.c.timeout)
		defer cancel()
		w.large.drop(after, w.chunkPrefix(), l.id)
	}
	return s, err
}

// has reports whether the queue has a message of a value in chunks, or may have it.
func (w *work) has(ctx context.Context, id string) bool {
	named, err := w.named(ctx)("", id)
	return named || err != nil
}

// finish waits until a value is stored, and while the queue is full.
func (w *work) finish(ctx context.Context, wr *write, wait bool) (stored, error) {
	for pause := leastPause; ; {
		s, err := w.c.finish(ctx, wr, w.gone)
		switch {
		case isFull(err):
			if err := w.full(ctx, &pause, wait); err != nil {
				return s, err
			}
		case err != nil && ctx.Err() != nil && !errors.Is(err, ErrUncertain) && !errors.Is(err, errCut):
			return s, ended(ctx, "put", nil)
		default:
			return s, apiError(err)
		}
	}
}

// apiError is what the broker's refusal to store means.
func apiError(err error) error {
	if has(codeStoreFailed)(err) {
		return both(ErrStorage, err)
	}
	return err
}

// full waits for room: an error ends the put.
func (w *work) full(ctx context.Context, pause *time.Duration, wait bool) error {
	if w.history > 0 && w.trim(ctx, time.Now()) {
		return nil
	}
	if !wait {
		return ErrFull
	}
	if sleep(ctx, *pause) != nil {
		return ended(ctx, "put", ErrFull)
	}
	*pause = min(2**pause, mostPause)
	return w.enter("put")
}

// gone is why no stream takes a value; nil if it will.
func (w *work) gone(ctx context.Context) error {
	s, err := w.c.stream(ctx, w.config.Name)
	switch {
	case err == nil && isFinished(s.CachedInfo().Config):
		w.end()
		return ErrClosed
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: the queue was deleted", ErrClosed)
	}
	return nil
}

// PutN puts the values as Put does, without waiting for each one alone, and returns how many it has
// put: all of them if err is nil. With an error, some of those after these may be put as well.
func (q *Queue[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	if err := q.enter("put"); err != nil {
		return 0, err
	}
	var under []*write
	bytes := 0
	end := func(most, mostBytes int) error {
		for ; len(under) > most || bytes > mostBytes; n++ {
			if _, err := q.finish(ctx, under[0], true); err != nil {
				return err
			}
			bytes -= len(under[0].m.Data)
			under[0].release()
			under = under[1:]
		}
		return nil
	}
	for _, v := range vs {
		w, err := q.begin(v)
		if err == nil && w == nil { // a large value is put alone
			if err = end(0, 0); err == nil {
				_, err = q.put(ctx, q.id(), v, true)
			}
			if err != nil {
				return n, q.failed("put", err)
			}
			n++
			continue
		}
		if err == nil {
			bytes += len(w.m.Data)
			under = append(under, w)
			err = end(pipelined, pipelinedBytes)
		}
		if err != nil {
			return n, q.failed("put", err)
		}
	}
	return n, q.failed("put", end(0, 0))
}

// begin makes the first attempt to store a value that is not large.
func (q *Queue[T]) begin(v T) (*write, error) {
	o, err := encode(q.plan, v)
	defer func() { o.done(err == nil) }()
	if err != nil || o.size > q.c.mostInline() {
		return nil, err
	}
	w := newWrite(q.small(), q.id(), o.payload())
	q.c.beginWrite(w)
	keep(v)
	return w, nil
}
