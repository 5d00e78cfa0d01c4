package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Delivery is a value that this process has received and must acknowledge, with [Delivery.Ack],
// [Delivery.Nak] or [Delivery.Reject]. The broker keeps the value until then. It redelivers the
// value to another receiver if this process dies or sends no heartbeat for QueueOptions.AckWait.
// Heartbeats are sent in the background while the process lives.
//
// A Delivery that becomes unreachable is returned to the queue when the garbage collector finds it.
type Delivery[T any] struct {
	Value   T         // the caller must close the shared memory it holds
	Attempt int       // number of deliveries of the value, including this one
	Time    time.Time // time of the put, by the broker's clock

	w *work
	h *held
}

// Note [Acknowledgements] The broker answers every acknowledgement alike, even for a message that
// it has already redelivered to another receiver. So the process itself must establish that it is
// the only one. A first receiver can rely on QueueOptions.AckWait, because the nodes of a cluster
// agree on the time of the delivery. After that period heartbeats must extend the delivery, and
// they are not sufficient: a node that is partitioned from its cluster answers heartbeats for up to
// 20 seconds, while the others may have elected another leader that redelivers the message; and a
// node that is killed may have lost them when it restarts.
//
// So a receiver that is late, or not the first, asks the stream to delete the message. Deletions
// are agreed on by all nodes, and only one of several deletions of a message succeeds: that
// receiver has acknowledged it. A queue with a history must keep its messages, so it relies on
// heartbeats alone.

// A held is a message that this process has received and not yet acknowledged.
// [work.trackMessage] makes it.
type held struct {
	m       *client.Msg
	seq     uint64 // sequence number in the stream
	attempt int
	again   bool // may have been delivered to another receiver before
	stored  time.Time
	large   string // id of its chunks, or empty

	born    int64        // lower bound of the delivery time, in nanoseconds since start
	at      atomic.Int64 // send time of the last confirmed heartbeat, likewise
	limit   time.Duration
	claimed atomic.Bool // whether a caller has received it
	settled atomic.Bool
	sent    atomic.Bool // whether an acknowledgement was sent that the broker may have processed
	deleted bool        // whether it was acknowledged by a deletion
}

// start is the origin of monotonic times.
var start = time.Now()

func sinceStart() int64 { return int64(time.Since(start)) }

// Acknowledgement messages of the JetStream protocol.
var (
	ackDone = []byte("+ACK")
	ackLive = []byte("+WPI")
)

// trackMessage registers a message that arrived in response to a pull request, so that
// heartbeats are sent for it. The request was sent at the time asked, in nanoseconds since
// start. The broker's AckWait timer started when it sent the message, which may be long ago if
// the network was interrupted. The delivery time is at least asked, and at least the time of the
// last confirmed flush (see [work.probeDelivery]).
func (w *work) trackMessage(m *client.Msg, asked int64) *held {
	h := &held{m: m, limit: w.ackWait * 9 / 10, born: max(asked, w.heardFrom.Load())}
	h.at.Store(h.born)
	if meta, err := m.Metadata(); err == nil {
		h.seq, h.attempt, h.stored = meta.Sequence.Stream, int(meta.NumDelivered), meta.Timestamp
	}
	h.again = h.attempt > 1
	if id, ok := strings.CutPrefix(m.Subject, w.largeSubject("")); ok {
		h.large = id
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[h] = struct{}{}
	return h
}

// isExpired reports whether the broker may have redelivered the message. It allows a margin of a
// tenth of AckWait, because the broker's timer started before ours.
func (h *held) isExpired() bool {
	return time.Since(start)-time.Duration(h.at.Load()) > h.limit
}

// confirmHeartbeat records that the broker confirmed a heartbeat sent at the given time, in
// nanoseconds since start. A confirmation that arrives after the message expired is ignored,
// because the broker may have redelivered the message before the heartbeat.
func (h *held) confirmHeartbeat(sent int64) {
	if !h.isExpired() {
		h.at.Store(sent)
	}
}

// untrackMessage marks h as settled and ends its heartbeats. It returns false if h had been
// settled before.
func (w *work) untrackMessage(h *held) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, h)
	return !h.settled.Swap(true)
}

// sendHeartbeats sends heartbeats for the messages this process holds until the queue is closed.
// It runs on a goroutine of its own. A stopped process sends none, and a partitioned one gets no
// confirmation, so in both cases the messages expire. Prefetched messages are returned to the
// queue if the process has not called a get for AckWait.
func (w *work) sendHeartbeats() {
	defer w.resting.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := max(w.ackWait/8, leastAckWait/8)
	t := time.NewTicker(tick)
	defer t.Stop()
	var signs []*answer // unconfirmed heartbeats
	for {
		select {
		case <-w.closing:
			return
		case <-t.C:
		}
		w.mu.Lock()
		asks := w.getters > 0 || time.Since(w.lastGet) < w.ackWait
		waits := asks || w.waiting > 0
		var unused *pull
		if !asks && w.ahead != nil {
			unused, w.ahead, w.asked = w.ahead, nil, 0
		}
		var live []*held
		for h := range w.held {
			if asks || h.claimed.Load() {
				live = append(live, h)
			}
		}
		w.mu.Unlock()
		if unused != nil {
			unused.abandonRequest()
		}
		if waits {
			w.probeDelivery(ctx)
		}
		late := signs[:0]
		for _, a := range signs {
			if time.Duration(sinceStart()-a.at) < w.ackWait {
				late = append(late, a)
			} else {
				w.c.abandonRequest(a)
			}
		}
		signs = late
		for _, h := range live {
			if h.settled.Load() || h.isExpired() || time.Duration(sinceStart()-h.at.Load()) < 2*tick {
				continue
			}
			a := &answer{at: sinceStart(), of: h}
			if w.c.send(&client.Msg{Subject: h.m.Reply, Data: ackLive}, a) == nil {
				signs = append(signs, a)
			}
		}
	}
}

// probeDelivery starts a flush of the connection on another goroutine, unless one is in progress.
// Flushes give a lower bound for the delivery time of later messages: the time at which the flush
// before the last one was sent. The last one must not be used, because a message that arrived with
// it may still be queued inside this process. A failed flush changes nothing.
func (w *work) probeDelivery(ctx context.Context) {
	if w.listening.Swap(true) {
		return
	}
	w.resting.Go(func() {
		defer w.listening.Store(false)
		sent := sinceStart()
		ctx, cancel := context.WithTimeout(ctx, w.c.timeout)
		defer cancel()
		if w.c.nc.FlushWithContext(ctx) == nil {
			w.heardFrom.Store(w.heardLast)
			w.heardLast = sent
		}
	})
}

// nakMessage returns a message to the queue, for redelivery after a delay. It does nothing if h was
// settled before or is expired.
func (w *work) nakMessage(h *held, after time.Duration) error {
	if !w.untrackMessage(h) || h.isExpired() {
		return nil
	}
	return w.c.nc.Publish(h.m.Reply, fmt.Appendf(nil, `-NAK {"delay":%d}`, after))
}

// mayBeRedelivered reports whether another receiver might acknowledge the message too; it must
// then be acknowledged by a deletion. A first receiver may send a plain acknowledgement within
// the first half of its limit, and a retry of it until the limit. See Note [Acknowledgements].
func (w *work) mayBeRedelivered(h *held) bool {
	age, sure := time.Duration(sinceStart()-h.born), h.limit/2
	if h.sent.Load() {
		sure = h.limit
	}
	return w.history == 0 && (h.again || age > sure)
}

// acknowledgeMessage acknowledges a message and waits for the broker's confirmation. It retries
// until ctx ends or the message expires. It returns [ErrExpired] if another receiver may have
// the message, and wraps [ErrUncertain] if the broker may have processed an acknowledgement
// despite the error.
func (w *work) acknowledgeMessage(ctx context.Context, h *held) error {
	fail := func(err error) error {
		if h.sent.Load() {
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		return err
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		if h.isExpired() {
			w.untrackMessage(h)
			return fail(h.expiredError(w.ackWait))
		}
		if err := w.c.awaitConnection(ctx); err != nil {
			return fail(err)
		}
		contested, before := w.mayBeRedelivered(h), h.sent.Load()
		request := &client.Msg{Subject: h.m.Reply, Data: ackDone}
		if contested {
			request = w.deletionRequest(h)
		}
		a, err := w.c.sendRequest(request)
		var answer *client.Msg
		if err == nil {
			if answer, err = w.c.awaitResponse(ctx, a); !errors.Is(err, client.ErrNoResponders) {
				h.sent.Store(true)
			}
		}
		if err == nil && contested {
			err = deletionError(answer)
		}
		_, refused := errors.AsType[*jetstream.APIError](err)
		if refused {
			h.sent.Store(before)
		}
		switch {
		case err == nil:
			w.c.recordResponse()
			w.untrackMessage(h)
			if !contested {
				return w.checkConfirmedInTime(h)
			}
			h.deleted = true
			w.c.nc.Publish(h.m.Reply, ackDone) // so that the consumer drops it at once
			return nil
		case isAPIError(codeNoMessage, codeNotDeleted)(err):
			w.untrackMessage(h)
			return fail(fmt.Errorf("%w: another receiver acknowledged the value", ErrExpired))
		case refused && !isAPIError(codeUnavailable)(err):
			return fail(err)
		case refused, errors.Is(err, client.ErrTimeout), errors.Is(err, client.ErrNoResponders):
			w.c.recordSilence()
		}
		if ctx.Err() != nil {
			return fail(err)
		}
		if err := sleep(ctx, pause); err != nil {
			return fail(err)
		}
	}
}

// deletionRequest returns a request that deletes h's message from the stream.
func (w *work) deletionRequest(h *held) *client.Msg {
	return &client.Msg{Subject: "$JS.API.STREAM.MSG.DELETE." + w.config.Name,
		Data: fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, h.seq)}
}

// deletionError returns the error in the response to a deletion, or nil if the message was
// deleted. A rejection is a [*jetstream.APIError].
func deletionError(m *client.Msg) error {
	var answer struct {
		Success bool                `json:"success"`
		Error   *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &answer); {
	case err != nil:
		return err
	case answer.Error != nil:
		return answer.Error
	case !answer.Success:
		return fmt.Errorf("%w: it answered a deletion without success", ErrBroker)
	}
	return nil
}

// expiredError returns the [ErrExpired] error of a message without a heartbeat.
func (h *held) expiredError(wait time.Duration) error {
	return fmt.Errorf("%w: last heartbeat %v ago, want at most %v", ErrExpired,
		time.Duration(sinceStart()-h.at.Load()).Round(time.Millisecond), wait)
}

// checkConfirmedInTime returns an error that wraps [ErrUncertain] and [ErrExpired] if the
// acknowledgement was confirmed too late. The broker confirms late acknowledgements too, even of
// messages that it has redelivered.
func (w *work) checkConfirmedInTime(h *held) error {
	since := h.at.Load()
	if w.history == 0 {
		since = h.born
	}
	if time.Duration(sinceStart()-since) > h.limit {
		return fmt.Errorf("%w: %w: the confirmation came after the limit of the delivery", ErrUncertain, ErrExpired)
	}
	return nil
}

// acknowledgeAll acknowledges messages and deletes their chunks. It returns the first error, as
// [work.acknowledgeMessage] does; the messages after it may then not be acknowledged. The broker
// processes the acknowledgements of a connection in order, so a confirmation of the last one
// confirms all of them. Contested messages are acknowledged first, one at a time.
func (w *work) acknowledgeAll(ctx context.Context, all []*held) (err error) {
	cut := w.c.sessionDone()
	var quick []*held
	for _, h := range all {
		if w.mayBeRedelivered(h) {
			err = w.acknowledgeMessage(ctx, h)
		} else {
			quick = append(quick, h)
		}
		if err != nil {
			return err
		}
	}
	last := len(quick) - 1
	for i, h := range quick {
		if i < last {
			h.sent.Store(true)
		}
		if h.isExpired() || i == last || w.c.nc.Publish(h.m.Reply, ackDone) != nil {
			err = w.acknowledgeMessage(ctx, h)
		}
		if err != nil {
			return err
		}
	}
	if last > 0 && (isClosed(cut) || quick[last].deleted) { // some may be lost
		for _, h := range quick[:last] {
			if err := w.acknowledgeMessage(ctx, h); err != nil {
				return err
			}
		}
	}
	for _, h := range all {
		if err == nil && !h.settled.Load() {
			err = w.checkConfirmedInTime(h)
		}
		w.untrackMessage(h)
		if h.large != "" && w.history == 0 {
			w.large.deletePieces(ctx, w.chunkPrefix(), h.large)
		}
	}
	w.trimThrottled(ctx)
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// newDelivery returns h as a Delivery. A cleanup returns the message to the queue if the Delivery
// becomes unreachable.
func newDelivery[T any](w *work, h *held, v T) *Delivery[T] {
	d := &Delivery[T]{Value: v, Attempt: h.attempt, Time: h.stored, w: w, h: h}
	runtime.AddCleanup(d, func(h *held) {
		if !h.settled.Load() {
			go w.nakMessage(h, 0)
		}
	}, h)
	return d
}

// Ack acknowledges the value and waits until the broker has removed it. If Ack returns nil, the
// value is never delivered again, and no other receiver has acknowledged it.
//
// It returns [ErrExpired] if this process sent no heartbeat for too long: the value is delivered
// to another receiver, so it is processed twice. The error wraps [ErrUncertain] if the broker
// did not respond, or responded too late for the response to be conclusive. It is [ErrClosed] if
// the delivery is settled already. The caller must still close the value.
func (d *Delivery[T]) Ack(ctx context.Context) error {
	if d.h.settled.Load() {
		return d.settledError("acknowledge")
	}
	err := d.w.acknowledgeAll(ctx, []*held{d.h})
	if errors.Is(err, ErrExpired) {
		return fmt.Errorf("nats: acknowledge: %w", err)
	}
	return d.w.wrapError("acknowledge", err)
}

func (d *Delivery[T]) settledError(op string) error {
	if d.h.isExpired() {
		return fmt.Errorf("nats: %s: %w", op, ErrExpired)
	}
	return fmt.Errorf("nats: %s: %w: the delivery is already acknowledged or returned", op, ErrClosed)
}

// Nak returns the value to the queue, for any receiver, after the given delay. The caller must
// still close the value. It returns [ErrClosed] if the delivery is settled and [ErrExpired] if it
// has expired.
func (d *Delivery[T]) Nak(after time.Duration) error {
	if d.h.settled.Load() || d.h.isExpired() {
		d.w.untrackMessage(d.h)
		return d.settledError("give back")
	}
	return d.w.wrapError("give back", d.w.nakMessage(d.h, after))
}

// Reject moves the value to the dead letters with a reason, without further attempts. The caller
// must still close the value. It returns [ErrClosed] if the delivery is settled and [ErrExpired]
// if it has expired.
func (d *Delivery[T]) Reject(ctx context.Context, reason string) error {
	if d.h.settled.Load() || d.h.isExpired() {
		d.w.untrackMessage(d.h)
		return d.settledError("reject")
	}
	return d.w.wrapError("reject", d.w.moveToDeadLetters(ctx, d.h, reason))
}

// Headers of dead letters, and the maximum length of a reason in bytes.
const (
	reasonHeader  = "Shoal-Reason"
	attemptHeader = "Shoal-Attempts"
	putHeader     = "Shoal-Put"
	mostReason    = 300
)

// moveToDeadLetters copies a message to the dead letter stream and then acknowledges it. If it
// returns an error, the message is not settled unless it has expired. If the process dies in
// between, another receiver repeats this and overwrites the dead letter, which has the same
// subject.
func (w *work) moveToDeadLetters(ctx context.Context, h *held, reason string) error {
	id := h.large
	if id == "" {
		id = "-"
	}
	reason = string(bytes.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, []byte(reason[:min(len(reason), mostReason)])))
	m := &client.Msg{Subject: w.deadSubject(h.seq, id), Data: h.m.Data, Header: client.Header{
		reasonHeader: {reason}, attemptHeader: {strconv.Itoa(h.attempt)},
		putHeader: {h.stored.UTC().Format(time.RFC3339Nano)}}}
	make := func(ctx context.Context) error { return w.c.createStream(ctx, w.dead) }
	if _, err := w.c.finishWrite(ctx, &write{m: m}, make); err != nil {
		return storageError(err)
	}
	if err := w.acknowledgeMessage(ctx, h); err != nil {
		return err
	}
	w.untrackMessage(h)
	return nil
}
