package nats

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Replay returns an iterator over the stored values that were put since the given time, oldest
// first. It ends with the last value that was stored when it began. The zero time selects all
// values. Replay consumes nothing, so it does not affect receivers. It includes acknowledged
// values within QueueOptions.History. The caller must close the shared memory that the values
// hold. An error is yielded once and ends the loop.
func (q *Queue[T]) Replay(ctx context.Context, since time.Time) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := q.checkOpen("replay"); err != nil {
			yield(*new(T), err)
			return
		}
		for m, err := range q.c.scanSince(ctx, q.config.Name, "shoal.q."+q.name+".>", since) {
			var v T
			if err == nil {
				v, err = q.decodeChunks(ctx, m.Data)
			}
			if !yield(v, q.wrapError("replay", err)) || err != nil {
				return
			}
		}
	}
}

// scanSince iterates over the messages that a stream contains when the loop begins and that were
// stored at or after the given time. An error is yielded once and ends the loop; it is
// [jetstream.ErrStreamNotFound] if there is no such stream.
func (c *Conn) scanSince(ctx context.Context, stream, filter string, since time.Time) iter.Seq2[*client.Msg, error] {
	return func(yield func(*client.Msg, error) bool) {
		s, err := c.lookupStream(ctx, stream)
		if err != nil {
			yield(nil, err)
			return
		}
		state := s.CachedInfo().State
		if state.Msgs == 0 {
			return
		}
		last := state.LastSeq
		for m, err := range c.scan(ctx, stream, scanning{filter: filter, from: 1, since: since}) {
			if err != nil {
				yield(nil, err)
				return
			}
			if sequenceOf(m) > last || !yield(m, nil) {
				return
			}
		}
	}
}

// sequenceOf returns the sequence number of a message that was read with [Conn.scan].
func sequenceOf(m *client.Msg) uint64 {
	n, _ := strconv.ParseUint(m.Header.Get(client.JSSequence), 10, 64)
	return n
}

// trimThrottled deletes acknowledged values older than the history, at most about once a second. It
// is a no-op for a queue without a history.
func (w *work) trimThrottled(ctx context.Context) {
	if w.history == 0 {
		return
	}
	w.mu.Lock()
	due := time.Since(w.lastTrim) > min(max(w.history/10, 10*time.Millisecond), time.Second)
	if due {
		w.lastTrim = time.Now()
	}
	w.mu.Unlock()
	if due {
		w.trimHistory(ctx, time.Now().Add(-w.history))
	}
}

// trimHistory deletes acknowledged values that were put before the given time, and reports whether
// it deleted any. It stops at the first value that is not acknowledged. Failures are ignored,
// because any process may trim later.
func (w *work) trimHistory(ctx context.Context, before time.Time) bool {
	info, err := w.consumerInfo(ctx)
	if err != nil {
		return false
	}
	s, err := w.c.lookupStream(ctx, w.config.Name)
	if err != nil {
		return false
	}
	state := s.CachedInfo().State
	keep := info.AckFloor.Stream + 1
	if info.NumAckPending == 0 { // every delivered message is acknowledged
		keep = min(info.Delivered.Stream, state.LastSeq) + 1
	}
	for m, err := range w.c.scan(ctx, w.config.Name, scanning{filter: "shoal.q." + w.name + ".>", from: 1,
		since: before, batch: 1}) {
		if err != nil {
			return false
		}
		keep = min(keep, sequenceOf(m))
		break
	}
	if state.Msgs == 0 || keep <= state.FirstSeq {
		return false
	}
	for m, err := range w.c.scan(ctx, w.config.Name, scanning{filter: w.largeSubject("*"), from: state.FirstSeq}) {
		if err != nil || sequenceOf(m) >= keep {
			break
		}
		subject := m.Header.Get(client.JSSubject)
		w.large.deletePieces(ctx, w.chunkPrefix(), subject[strings.LastIndexByte(subject, '.')+1:])
	}
	return w.c.purgeStream(ctx, w.config.Name, jetstream.WithPurgeSequence(keep)) == nil
}

// A DeadLetter is a value that reached the delivery limit without being acknowledged, could not be
// decoded, or was rejected. The broker keeps it until [DeadLetter.Requeue] or [DeadLetter.Delete].
type DeadLetter[T any] struct {
	Value    T         // the zero value if decoding failed
	Err      error     // decoding error, or nil
	Reason   string    // why it became a dead letter
	Attempts int       // number of deliveries
	Time     time.Time // time of the put

	w   *work
	seq uint64
	m   *client.Msg
}

// DeadLetters returns an iterator over the current dead letters of the queue, oldest first. The
// caller must close the shared memory that their values hold. An error is yielded once and ends the
// loop.
func (q *Queue[T]) DeadLetters(ctx context.Context) iter.Seq2[*DeadLetter[T], error] {
	return func(yield func(*DeadLetter[T], error) bool) {
		if err := q.checkOpen("dead letters"); err != nil {
			yield(nil, err)
			return
		}
		for m, err := range q.c.scanSince(ctx, q.dead.Name, "shoal.d."+q.name+".>", time.Time{}) {
			if isAny(jetstream.ErrStreamNotFound)(err) { // no dead letter was ever stored
				return
			}
			if err != nil {
				yield(nil, q.wrapError("dead letters", err))
				return
			}
			d := &DeadLetter[T]{Reason: m.Header.Get(reasonHeader), w: q.work, seq: sequenceOf(m), m: m}
			d.Attempts, _ = strconv.Atoi(m.Header.Get(attemptHeader))
			d.Time, _ = time.Parse(time.RFC3339Nano, m.Header.Get(putHeader))
			if d.Value, d.Err = q.decodeChunks(ctx, m.Data); ctx.Err() != nil {
				yield(nil, q.wrapError("dead letters", d.Err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Requeue moves the value back to the queue, with a delivery count of zero. It waits while the
// queue is full. It stores the value once, even if several processes call it. The caller must
// still close the Value. It returns [ErrClosed] for a finished queue.
func (d *DeadLetter[T]) Requeue(ctx context.Context) error {
	subject := d.w.valueSubject()
	l, inChunks, err := largeOf(d.m.Data)
	if err == nil && inChunks {
		subject = d.w.largeSubject(l.id)
	}
	if err == nil {
		id := fmt.Sprintf("again %d %s", d.seq, d.m.Header.Get(client.JSTimeStamp))
		_, err = d.w.awaitStored(ctx, newWrite(subject, id, d.m.Data), true)
	}
	if err == nil {
		err = d.remove(ctx)
	}
	return d.w.wrapError("requeue", err)
}

// Delete deletes the dead letter permanently. The caller must still close the Value. It returns
// nil if another process has deleted the dead letter.
func (d *DeadLetter[T]) Delete(ctx context.Context) error {
	err := d.remove(ctx)
	if l, inChunks, bad := largeOf(d.m.Data); err == nil && bad == nil && inChunks {
		d.w.large.deletePieces(ctx, d.w.chunkPrefix(), l.id)
	}
	return d.w.wrapError("delete", err)
}

func (d *DeadLetter[T]) remove(ctx context.Context) error {
	_, err := retryRequest(ctx, d.w.c, func(ctx context.Context) (any, error) {
		s, err := d.w.c.js.Stream(ctx, d.w.dead.Name)
		if err == nil {
			err = s.DeleteMsg(ctx, d.seq)
		}
		return nil, err
	})
	if err != nil && strings.Contains(err.Error(), "no message found") { // already deleted
		return nil
	}
	return err
}
