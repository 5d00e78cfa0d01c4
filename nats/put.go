package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Put stores v in the queue and waits for the broker's confirmation. It waits while the queue is
// full. v is copied; the caller must still close it.
//
// It returns [ErrClosed] for a finished queue, [ErrTooLarge] if v exceeds the queue's MaxBytes,
// [ErrStorage] if the broker is full, and [ErrUnreachable] if the connection stays broken. If ctx
// has a deadline that passes while the queue is full, the error wraps [ErrFull] and
// [context.DeadlineExceeded]. If Put returns an error, v is not stored, unless the error wraps
// [ErrUncertain].
func (q *Queue[T]) Put(ctx context.Context, v T) error {
	if err := q.enter("put"); err != nil {
		return err
	}
	_, err := q.put(ctx, q.id(), v, true)
	return q.failed("put", err)
}

// TryPut stores v as [Queue.Put] does, but returns [ErrFull] instead of waiting for room.
func (q *Queue[T]) TryPut(ctx context.Context, v T) error {
	if err := q.enter("put"); err != nil {
		return err
	}
	_, err := q.put(ctx, q.id(), v, false)
	return q.failed("put", err)
}

// PutOnce stores v as [Queue.Put] does, unless a value was put with the same id within the last two
// minutes. The id must not be empty. fresh reports whether this call stored v.
func (q *Queue[T]) PutOnce(ctx context.Context, id string, v T) (fresh bool, err error) {
	if err := q.enter("put"); err != nil {
		return false, err
	}
	if id == "" {
		return false, fmt.Errorf("nats: put: %w: id is empty", ErrOptions)
	}
	s, err := q.put(ctx, "once "+id, v, true)
	return err == nil && !s.Duplicate, q.failed("put", err)
}

// failed wraps the error of an operation of the queue.
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

// store stores an encoded value, in one message or in chunks.
func (w *work) store(ctx context.Context, id string, o *outgoing, wait bool) (stored, error) {
	if w.config.MaxBytes > 0 && int64(o.size) > w.config.MaxBytes {
		return stored{}, fmt.Errorf("%w: value has %d bytes, want at most %d", ErrTooLarge, o.size, w.config.MaxBytes)
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

// has reports whether the queue has, or may have, a message that references the chunks.
func (w *work) has(ctx context.Context, id string) bool {
	named, err := w.named(ctx)("", id)
	return named || err != nil
}

// finish waits until a value is stored. If the queue is full, it waits for room, or returns
// [ErrFull] if wait is false.
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

// apiError maps an API error of a store operation to [ErrStorage] if the broker is full.
func apiError(err error) error {
	if has(codeStoreFailed)(err) {
		return both(ErrStorage, err)
	}
	return err
}

// full makes room by trimming the history, or waits for room. It returns nil if the caller should
// retry the put.
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

// gone returns the reason why no stream accepts the value, or nil if one may later.
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

// PutN stores values as [Queue.Put] does, but pipelines the writes. It returns the number of values
// stored: len(vs) if err is nil. If err is not nil, some of the values after vs[:n] may be stored
// too.
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
		if err == nil && w == nil { // large values are not pipelined
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

// begin sends the first attempt to store v. It returns nil if v needs chunks.
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
