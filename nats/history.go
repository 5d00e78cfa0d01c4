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
// values. Replay consumes nothing, so it does not affect receivers. It includes acknowledged values
// within QueueOptions.History. An error is yielded once and ends the loop.
func (q *Queue[T]) Replay(ctx context.Context, since time.Time) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := q.enter("replay"); err != nil {
			yield(*new(T), err)
			return
		}
		for m, err := range q.c.all(ctx, q.config.Name, "shoal.q."+q.name+".>", since) {
			var v T
			if err == nil {
				v, err = q.read(ctx, m.Data)
			}
			if !yield(v, q.failed("replay", err)) || err != nil {
				return
			}
		}
	}
}

// all iterates over the messages that a stream contains at the time of the call.
func (c *Conn) all(ctx context.Context, stream, filter string, since time.Time) iter.Seq2[*client.Msg, error] {
	return func(yield func(*client.Msg, error) bool) {
		s, err := c.stream(ctx, stream)
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
			if sequence(m) > last || !yield(m, nil) {
				return
			}
		}
	}
}

// sequence returns the sequence number of a message that was read with [Conn.scan].
func sequence(m *client.Msg) uint64 {
	n, _ := strconv.ParseUint(m.Header.Get(client.JSSequence), 10, 64)
	return n
}

// trimSometimes deletes acknowledged values older than the history, at most about once a second. It
// is a no-op for a queue without a history.
func (w *work) trimSometimes(ctx context.Context) {
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
		w.trim(ctx, time.Now().Add(-w.history))
	}
}

// trim deletes acknowledged values that were put before the given time, and reports whether it
// deleted any. It stops at the first value that is not acknowledged. Failures are ignored, because
// any process may trim later.
func (w *work) trim(ctx context.Context, before time.Time) bool {
	info, err := w.info(ctx)
	if err != nil {
		return false
	}
	s, err := w.c.stream(ctx, w.config.Name)
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
		keep = min(keep, sequence(m))
		break
	}
	if state.Msgs == 0 || keep <= state.FirstSeq {
		return false
	}
	for m, err := range w.c.scan(ctx, w.config.Name, scanning{filter: w.largeOne("*"), from: state.FirstSeq}) {
		if err != nil || sequence(m) >= keep {
			break
		}
		subject := m.Header.Get(client.JSSubject)
		w.large.drop(ctx, w.chunkPrefix(), subject[strings.LastIndexByte(subject, '.')+1:])
	}
	return w.c.purge(ctx, w.config.Name, jetstream.WithPurgeSequence(keep)) == nil
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
		if err := q.enter("dead letters"); err != nil {
			yield(nil, err)
			return
		}
		for m, err := range q.c.all(ctx, q.dead.Name, "shoal.d."+q.name+".>", time.Time{}) {
			if isAny(jetstream.ErrStreamNotFound)(err) { // no dead letter was ever stored
				return
			}
			if err != nil {
				yield(nil, q.failed("dead letters", err))
				return
			}
			d := &DeadLetter[T]{Reason: m.Header.Get(reasonHeader), w: q.work, seq: sequence(m), m: m}
			d.Attempts, _ = strconv.Atoi(m.Header.Get(attemptHeader))
			d.Time, _ = time.Parse(time.RFC3339Nano, m.Header.Get(putHeader))
			if d.Value, d.Err = q.read(ctx, m.Data); ctx.Err() != nil {
				yield(nil, q.failed("dead letters", d.Err))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// Requeue moves the value back to the queue, with a delivery count of zero. It stores the value
// once, even if several processes call it.
func (d *DeadLetter[T]) Requeue(ctx context.Context) error {
	subject := d.w.small()
	l, inChunks, err := largeOf(d.m.Data)
	if err == nil && inChunks {
		subject = d.w.largeOne(l.id)
	}
	if err == nil {
		id := fmt.Sprintf("again %d %s", d.seq, d.m.Header.Get(client.JSTimeStamp))
		_, err = d.w.finish(ctx, newWrite(subject, id, d.m.Data), true)
	}
	if err == nil {
		err = d.remove(ctx)
	}
	return d.w.failed("requeue", err)
}

// Delete deletes the dead letter permanently. It returns nil if another process has deleted it.
func (d *DeadLetter[T]) Delete(ctx context.Context) error {
	err := d.remove(ctx)
	if l, inChunks, bad := largeOf(d.m.Data); err == nil && bad == nil && inChunks {
		d.w.large.drop(ctx, d.w.chunkPrefix(), l.id)
	}
	return d.w.failed("delete", err)
}

func (d *DeadLetter[T]) remove(ctx context.Context) error {
	_, err := ask(ctx, d.w.c, func(ctx context.Context) (any, error) {
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
