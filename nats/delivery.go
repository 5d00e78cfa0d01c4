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

// A Delivery is a value that this process has taken and has to acknowledge. Until then the broker
// keeps the value. It gives the value to another receiver when this process dies, or is silent for
// QueueOptions.AckWait; as long as the process lives, it says so by itself.
//
// A Delivery that is forgotten goes back when the garbage collector finds it.
type Delivery[T any] struct {
	Value   T         // the caller closes what it holds of shared memory
	Attempt int       // how often the value was given out, this time included
	Time    time.Time // when it was put, by the broker's clock

	w *work
	h *held
}

// Note [Who acknowledges] The broker answers each acknowledgement alike, also one of a message that
// it has given to another receiver meanwhile. So this process has to know that it has not. A first
// receiver knows for QueueOptions.AckWait: the nodes of a cluster have agreed on when the message
// was given out. After that signs of life have to keep the message, and they do not suffice. A node
// that is cut off from the others of its cluster answers them for up to 20 seconds, when the others
// have chosen another leader, which gives the message to another receiver. And a node that is
// killed may have forgotten them when it is started again.
//
// So a receiver that is late, or not the first, has the stream delete the message. All nodes agree
// on a deletion, and of several only one succeeds: that receiver has acknowledged the message. A
// queue with a history keeps its messages, and has the signs of life alone.

// held is a message that this process has taken.
type held struct {
	m       *client.Msg
	seq     uint64 // in the stream
	attempt int
	again   bool // another receiver may have had it before
	stored  time.Time
	large   string // the id of its chunks

	born    int64        // when the broker gave it out, or before, in nanoseconds since start
	at      atomic.Int64 // when the broker knew for sure that we live, likewise
	limit   time.Duration
	claimed atomic.Bool // by a caller
	settled atomic.Bool
	sent    atomic.Bool // an acknowledgement, which the broker may have handled
	deleted bool        // by an acknowledgement that was contested
}

// start is what times are measured from, by the monotonic clock.
var start = time.Now()

func sinceStart() int64 { return int64(time.Since(start)) }

// Messages to the broker about one that was taken.
var (
	ackDone = []byte("+ACK")
	ackLive = []byte("+WPI")
)

// hold keeps a message that has arrived, of a question that was asked at a time. The broker's clock
// began when it sent the message, which may be long ago if the way was cut: not before it was
// asked, and not before what else it has said.
func (w *work) hold(m *client.Msg, asked int64) *held {
	h := &held{m: m, limit: w.ackWait * 9 / 10, born: max(asked, w.heardFrom.Load())}
	h.at.Store(h.born)
	if meta, err := m.Metadata(); err == nil {
		h.seq, h.attempt, h.stored = meta.Sequence.Stream, int(meta.NumDelivered), meta.Timestamp
	}
	h.again = h.attempt > 1
	if id, ok := strings.CutPrefix(m.Subject, w.largeOne("")); ok {
		h.large = id
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[h] = struct{}{}
	return h
}

// expired reports whether the broker may have given the message to another receiver. It says so a
// little early: the broker's clock began before ours.
func (h *held) expired() bool {
	return time.Since(start)-time.Duration(h.at.Load()) > h.limit
}

// lives says that the broker has answered a sign of life that was sent at a time. An answer that
// comes late says nothing: the sign may have been late.
func (h *held) lives(sent int64) {
	if !h.expired() {
		h.at.Store(sent)
	}
}

// settle says that a message is no longer ours to extend, and reports whether it was.
func (w *work) settle(h *held) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, h)
	return !h.settled.Swap(true)
}

// extend tells the broker again and again that this process lives, for each message that it has. A
// process that is stopped says nothing, and one that is cut off gets no answer. What was asked for
// ahead goes to other processes if this one has not got anything for a while.
func (w *work) extend() {
	defer w.resting.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := max(w.ackWait/8, leastAckWait/8)
	t := time.NewTicker(tick)
	defer t.Stop()
	var signs []*answer // that have no answer yet
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
			unused.drain()
		}
		if waits {
			w.listen(ctx)
		}
		late := signs[:0]
		for _, a := range signs {
			if time.Duration(sinceStart()-a.at) < w.ackWait {
				late = append(late, a)
			} else {
				w.c.forget(a)
			}
		}
		signs = late
		for _, h := range live {
			if h.settled.Load() || h.expired() || time.Duration(sinceStart()-h.at.Load()) < 2*tick {
				continue
			}
			a := &answer{at: sinceStart(), of: h}
			if w.c.send(&client.Msg{Subject: h.m.Reply, Data: ackLive}, a) == nil {
				signs = append(signs, a)
			}
		}
	}
}

// listen asks for a sign of life of the broker, by which it is known of what arrives after that how
// old it is at most. The one before the last counts: a message that came with the last one may
// still be on its way through this process.
func (w *work) listen(ctx context.Context) {
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

// giveBack gives a message to other receivers, after a while.
func (w *work) giveBack(h *held, after time.Duration) error {
	if !w.settle(h) || h.expired() {
		return nil
	}
	return w.c.nc.Publish(h.m.Reply, fmt.Appendf(nil, `-NAK {"delay":%d}`, after))
}

// contested reports whether another receiver may acknowledge the message as well. A first receiver
// has half of its time for the answer to an acknowledgement, and the answer to another attempt may
// take what is left of the whole.
func (w *work) contested(h *held) bool {
	age, sure := time.Duration(sinceStart()-h.born), h.limit/2
	if h.sent.Load() {
		sure = h.limit
	}
	return w.history == 0 && (h.again || age > sure)
}

// acknowledge has the broker remove a message, and waits until it says so. The error is ErrExpired
// if another receiver may have the message.
func (w *work) acknowledge(ctx context.Context, h *held) error {
	fail := func(err error) error {
		if h.sent.Load() {
			err = fmt.Errorf("%w: %w", ErrUncertain, err)
		}
		return err
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		if h.expired() {
			w.settle(h)
			return fail(h.late(w.ackWait))
		}
		if err := w.c.connected(ctx); err != nil {
			return fail(err)
		}
		contested, before := w.contested(h), h.sent.Load()
		request := &client.Msg{Subject: h.m.Reply, Data: ackDone}
		if contested {
			request = w.deletion(h)
		}
		a, err := w.c.request(request)
		var answer *client.Msg
		if err == nil {
			if answer, err = w.c.wait(ctx, a); !errors.Is(err, client.ErrNoResponders) {
				h.sent.Store(true)
			}
		}
		if err == nil && contested {
			err = deleted(answer)
		}
		_, refused := errors.AsType[*jetstream.APIError](err)
		if refused {
			h.sent.Store(before)
		}
		switch {
		case err == nil:
			w.c.heard()
			w.settle(h)
			if !contested {
				return w.answered(h)
			}
			h.deleted = true
			w.c.nc.Publish(h.m.Reply, ackDone) // the consumer forgets it at once
			return nil
		case has(codeNoMessage, codeNotDeleted)(err):
			w.settle(h)
			return fail(fmt.Errorf("%w: another receiver has acknowledged the value", ErrExpired))
		case refused && !has(codeUnavailable)(err):
			return fail(err)
		case refused, errors.Is(err, client.ErrTimeout), errors.Is(err, client.ErrNoResponders):
			w.c.unheard()
		}
		if ctx.Err() != nil {
			return fail(err)
		}
		if err := sleep(ctx, pause); err != nil {
			return fail(err)
		}
	}
}

// deletion asks the stream to delete a message.
func (w *work) deletion(h *held) *client.Msg {
	return &client.Msg{Subject: "$JS.API.STREAM.MSG.DELETE." + w.config.Name,
		Data: fmt.Appendf(nil, `{"seq":%d,"no_erase":true}`, h.seq)}
}

// deleted is the error in an answer to a deletion.
func deleted(m *client.Msg) error {
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
		return fmt.Errorf("%w: an answer without success", ErrBroker)
	}
	return nil
}

// late is why a message cannot be acknowledged.
func (h *held) late(wait time.Duration) error {
	return fmt.Errorf("%w: no sign of life for %v of %v", ErrExpired,
		time.Duration(sinceStart()-h.at.Load()).Round(time.Millisecond), wait)
}

// answered is the error of an acknowledgement that the broker has answered. It answers late ones as
// well, of messages that others have got meanwhile.
func (w *work) answered(h *held) error {
	since := h.at.Load()
	if w.history == 0 {
		since = h.born
	}
	if time.Duration(sinceStart()-since) > h.limit {
		return fmt.Errorf("%w: %w: the answer took too long", ErrUncertain, ErrExpired)
	}
	return nil
}

// acknowledged acknowledges messages, and what is left of large ones goes as well. The broker
// handles the acknowledgements of a connection in their order, so the answer to the last one is one
// to all but the contested ones, which come first, each by itself.
func (w *work) acknowledged(ctx context.Context, all []*held) (err error) {
	cut := w.c.session()
	var quick []*held
	for _, h := range all {
		if w.contested(h) {
			err = w.acknowledge(ctx, h)
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
		if h.expired() || i == last || w.c.nc.Publish(h.m.Reply, ackDone) != nil {
			err = w.acknowledge(ctx, h)
		}
		if err != nil {
			return err
		}
	}
	if last > 0 && (isClosed(cut) || quick[last].deleted) { // some may have been lost
		for _, h := range quick[:last] {
			if err := w.acknowledge(ctx, h); err != nil {
				return err
			}
		}
	}
	for _, h := range all {
		if err == nil && !h.settled.Load() {
			err = w.answered(h)
		}
		w.settle(h)
		if h.large != "" && w.history == 0 {
			w.large.drop(ctx, w.chunkPrefix(), h.large)
		}
	}
	w.trimSometimes(ctx)
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

// newDelivery returns a message as a Delivery, which goes back if it is forgotten.
func newDelivery[T any](w *work, h *held, v T) *Delivery[T] {
	d := &Delivery[T]{Value: v, Attempt: h.attempt, Time: h.stored, w: w, h: h}
	runtime.AddCleanup(d, func(h *held) {
		if !h.settled.Load() {
			go w.giveBack(h, 0)
		}
	}, h)
	return d
}

// Ack says that the value is done with, and waits until the broker has removed it: after nil no
// receiver gets it again, and no other has acknowledged it. The error is ErrExpired if this process
// was silent for too long: another receiver has the value, or gets it, and what was done for it is
// done twice. It wraps ErrUncertain if the broker did not answer, or if its answer says nothing
// because it came too late.
func (d *Delivery[T]) Ack(ctx context.Context) error {
	if d.h.settled.Load() {
		return d.over("acknowledge")
	}
	err := d.w.acknowledged(ctx, []*held{d.h})
	if errors.Is(err, ErrExpired) {
		return fmt.Errorf("nats: acknowledge: %w", err)
	}
	return d.w.failed("acknowledge", err)
}

func (d *Delivery[T]) over(op string) error {
	if d.h.expired() {
		return fmt.Errorf("nats: %s: %w", op, ErrExpired)
	}
	return fmt.Errorf("nats: %s: %w: it is acknowledged or given back", op, ErrClosed)
}

// Nak gives the value back, for any receiver to take after a while, or at once. The caller still
// closes it.
func (d *Delivery[T]) Nak(after time.Duration) error {
	if d.h.settled.Load() || d.h.expired() {
		d.w.settle(d.h)
		return d.over("give back")
	}
	return d.w.failed("give back", d.w.giveBack(d.h, after))
}

// Reject makes the value a dead letter with a reason, without trying any receiver again.
func (d *Delivery[T]) Reject(ctx context.Context, reason string) error {
	if d.h.settled.Load() || d.h.expired() {
		d.w.settle(d.h)
		return d.over("reject")
	}
	return d.w.failed("reject", d.w.deadLetter(ctx, d.h, reason))
}

// Headers of dead letters.
const (
	reasonHeader  = "Shoal-Reason"
	attemptHeader = "Shoal-Attempts"
	putHeader     = "Shoal-Put"
	mostReason    = 300
)

// deadLetter moves a message to the dead letters. If the process dies in between, another receiver
// does it again, in the place of this one.
func (w *work) deadLetter(ctx context.Context, h *held, reason string) error {
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
	m := &client.Msg{Subject: w.deadOne(h.seq, id), Data: h.m.Data, Header: client.Header{
		reasonHeader: {reason}, attemptHeader: {strconv.Itoa(h.attempt)},
		putHeader: {h.stored.UTC().Format(time.RFC3339Nano)}}}
	make := func(ctx context.Context) error { return w.c.make(ctx, w.dead) }
	if _, err := w.c.finish(ctx, &write{m: m}, make); err != nil {
		return apiError(err)
	}
	if err := w.acknowledge(ctx, h); err != nil {
		return err
	}
	w.settle(h)
	return nil
}
