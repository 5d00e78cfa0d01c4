package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
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

// held is a message that this process has taken.
type held struct {
	m       *client.Msg
	seq     uint64 // in the stream
	attempt int
	stored  time.Time
	large   string // the id of its chunks

	at      atomic.Int64 // when the broker knew for sure that we live, in nanoseconds since start
	limit   time.Duration
	claimed atomic.Bool // by a caller
	settled atomic.Bool
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
	h := &held{m: m, limit: w.ackWait * 9 / 10}
	h.at.Store(max(asked, w.heardFrom.Load()))
	if meta, err := m.Metadata(); err == nil {
		h.seq, h.attempt, h.stored = meta.Sequence.Stream, int(meta.NumDelivered), meta.Timestamp
	}
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

// acknowledge has the broker remove a message, and waits until it says so. The error is ErrExpired
// if another receiver may have the message.
func (w *work) acknowledge(ctx context.Context, h *held) error {
	sent := false
	fail := func(err error) error {
		if sent {
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
		a, err := w.c.request(&client.Msg{Subject: h.m.Reply, Data: ackDone})
		if err == nil {
			_, err = w.c.wait(ctx, a)
			sent = sent || !errors.Is(err, client.ErrNoResponders)
		}
		if err == nil {
			w.c.heard()
			w.settle(h)
			return h.answered(w.ackWait)
		}
		if errors.Is(err, client.ErrTimeout) || errors.Is(err, client.ErrNoResponders) {
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

// late is why a message cannot be acknowledged.
func (h *held) late(wait time.Duration) error {
	return fmt.Errorf("%w: no sign of life for %v of %v", ErrExpired,
		time.Duration(sinceStart()-h.at.Load()).Round(time.Millisecond), wait)
}

// answered is the error of an acknowledgement that the broker has answered. It answers late ones as
// well, of messages that others have got meanwhile.
func (h *held) answered(wait time.Duration) error {
	if h.expired() {
		return fmt.Errorf("%w: %w", ErrUncertain, h.late(wait))
	}
	return nil
}

// acknowledged acknowledges messages, and what is left of large ones goes as well. The broker
// handles the acknowledgements of a connection in their order, so the answer to the last one is one
// to all.
func (w *work) acknowledged(ctx context.Context, all []*held) (err error) {
	if len(all) == 0 {
		return nil
	}
	last := len(all) - 1
	cut := w.c.session()
	for _, h := range all[:last] {
		if h.expired() || w.c.nc.Publish(h.m.Reply, ackDone) != nil {
			err = w.acknowledge(ctx, h)
		}
		if err != nil {
			return err
		}
	}
	if err := w.acknowledge(ctx, all[last]); err != nil {
		return err
	}
	if last > 0 && isClosed(cut) { // some may have been lost
		for _, h := range all[:last] {
			if err := w.acknowledge(ctx, h); err != nil {
				return err
			}
		}
	}
	for _, h := range all {
		if err == nil && !h.settled.Load() {
			err = h.answered(w.ackWait)
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
// receiver gets it again. The error is ErrExpired if this process was silent for too long: another
// receiver has the value, or gets it, and what was done for it is done twice. It wraps ErrUncertain
// if the broker did not answer.
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
