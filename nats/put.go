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
	if err := q.checkOpen("put"); err != nil {
		return err
	}
	_, err := q.put(ctx, q.newID(), v, true)
	return q.wrapError("put", err)
}

// TryPut stores v as [Queue.Put] does, but returns [ErrFull] instead of waiting for room.
func (q *Queue[T]) TryPut(ctx context.Context, v T) error {
	if err := q.checkOpen("put"); err != nil {
		return err
	}
	_, err := q.put(ctx, q.newID(), v, false)
	return q.wrapError("put", err)
}

// PutOnce stores v as [Queue.Put] does, unless a value was put with the same id within the last
// two minutes. fresh is false, without an error, in that case. The error wraps [ErrOptions] if
// id is empty.
func (q *Queue[T]) PutOnce(ctx context.Context, id string, v T) (fresh bool, err error) {
	if err := q.checkOpen("put"); err != nil {
		return false, err
	}
	if id == "" {
		return false, fmt.Errorf("nats: put: %w: id is empty", ErrOptions)
	}
	s, err := q.put(ctx, "once "+id, v, true)
	return err == nil && !s.Duplicate, q.wrapError("put", err)
}

// wrapError adds the operation of the queue to err. Errors of the broker become a [*HostError].
// It returns nil for nil.
func (w *work) wrapError(op string, err error) error {
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
		return s, contextError(ctx, "put", nil)
	}
	o, err := encode(q.plan, v)
	if err == nil {
		s, err = q.store(ctx, id, o, wait)
	}
	o.releaseValue(err == nil)
	keepAlive(v)
	return s, err
}

// store stores an encoded value, in one message or in chunks. A second value with the same id is
// not stored. If the queue is full, store waits for room, or returns [ErrFull] if wait is false.
// The caller must still release o.
func (w *work) store(ctx context.Context, id string, o *outgoing, wait bool) (stored, error) {
	if w.config.MaxBytes > 0 && int64(o.size) > w.config.MaxBytes {
		return stored{}, fmt.Errorf("%w: value has %d bytes, want at most %d", ErrTooLarge, o.size, w.config.MaxBytes)
	}
	if o.size <= w.c.mostInline() {
		m := newWrite(w.valueSubject(), id, o.encodePayload())
		defer m.release()
		return w.awaitStored(ctx, m, wait)
	}
	if err := w.large.createStream(ctx); err != nil {
		return stored{}, err
	}
	l := large{id: chunkID(w.newID())}
	pause := leastPause
	full := func(error) error { return w.awaitCapacity(ctx, &pause, wait) }
	l, err := w.large.writePieces(ctx, w.chunkPrefix(), l.id, o, full)
	var s stored
	if err == nil {
		s, err = w.awaitStored(ctx, newWrite(w.largeSubject(l.id), id, l.appendReference(nil)), wait)
	}
	if err == nil {
		if err := w.large.ensureStored(ctx, w.chunkPrefix(), l, o, full, w.referenceChecker(ctx)); err != nil {
			return s, fmt.Errorf("%w: %w", ErrUncertain, err)
		}
	}
	if unused := err != nil && !errors.Is(err, ErrUncertain) || s.Duplicate && !w.hasReference(ctx, l.id); unused {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.c.timeout)
		defer cancel()
		w.large.deletePieces(after, w.chunkPrefix(), l.id)
	}
	return s, err
}

// hasReference reports whether the queue has a message that references the chunks. It returns
// true if the broker does not answer.
func (w *work) hasReference(ctx context.Context, id string) bool {
	named, err := w.referenceChecker(ctx)("", id)
	return named || err != nil
}

// awaitStored waits until a value is stored. If the queue is full, it waits for room, or returns
// [ErrFull] if wait is false. The error wraps [ErrClosed] if the queue is finished or was
// deleted, and [ErrStorage] if the broker is full; see [Conn.finishWrite] for others.
func (w *work) awaitStored(ctx context.Context, wr *write, wait bool) (stored, error) {
	for pause := leastPause; ; {
		s, err := w.c.finishWrite(ctx, wr, w.closedReason)
		switch {
		case isFull(err):
			if err := w.awaitCapacity(ctx, &pause, wait); err != nil {
				return s, err
			}
		case err != nil && ctx.Err() != nil && !errors.Is(err, ErrUncertain) && !errors.Is(err, errCut):
			return s, contextError(ctx, "put", nil)
		default:
			return s, storageError(err)
		}
	}
}

// storageError returns err, the error of a store operation, and adds [ErrStorage] if the broker
// is full.
func storageError(err error) error {
	if isAPIError(codeStoreFailed)(err) {
		return wrapBoth(ErrStorage, err)
	}
	return err
}

// awaitCapacity makes room by trimming the history, or waits for the duration *pause, which it
// doubles. It returns nil if the caller should retry the put. It returns [ErrFull] if wait is
// false, an error that wraps it if a deadline passes, and [ErrClosed] if the queue is closed.
func (w *work) awaitCapacity(ctx context.Context, pause *time.Duration, wait bool) error {
	if w.history > 0 && w.trimHistory(ctx, time.Now()) {
		return nil
	}
	if !wait {
		return ErrFull
	}
	if sleep(ctx, *pause) != nil {
		return contextError(ctx, "put", ErrFull)
	}
	*pause = min(2**pause, mostPause)
	return w.checkOpen("put")
}

// closedReason returns the reason why no stream accepts the value, or nil if one may later. The
// error wraps [ErrClosed] if the queue is finished or was deleted.
func (w *work) closedReason(ctx context.Context) error {
	s, err := w.c.lookupStream(ctx, w.config.Name)
	switch {
	case err == nil && isFinished(s.CachedInfo().Config):
		w.markFinished()
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
	if err := q.checkOpen("put"); err != nil {
		return 0, err
	}
	var under []*write
	bytes := 0
	end := func(most, mostBytes int) error {
		for ; len(under) > most || bytes > mostBytes; n++ {
			if _, err := q.awaitStored(ctx, under[0], true); err != nil {
				return err
			}
			bytes -= len(under[0].m.Data)
			under[0].release()
			under = under[1:]
		}
		return nil
	}
	for _, v := range vs {
		w, err := q.startPut(v)
		if err == nil && w == nil { // large values are not pipelined
			if err = end(0, 0); err == nil {
				_, err = q.put(ctx, q.newID(), v, true)
			}
			if err != nil {
				return n, q.wrapError("put", err)
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
			return n, q.wrapError("put", err)
		}
	}
	return n, q.wrapError("put", end(0, 0))
}

// startPut sends the first attempt to store v. It returns nil without an error if v needs
// chunks. Otherwise the caller must complete the write with [work.awaitStored] and then release
// it. v may be closed when startPut returns.
func (q *Queue[T]) startPut(v T) (*write, error) {
	o, err := encode(q.plan, v)
	defer func() { o.releaseValue(err == nil) }()
	if err != nil || o.size > q.c.mostInline() {
		return nil, err
	}
	w := newWrite(q.valueSubject(), q.newID(), o.encodePayload())
	q.c.startWrite(w)
	keepAlive(v)
	return w, nil
}
