package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
)

const (
	// pullMost is the maximum number of values in one pull request, and pullBytes the maximum total
	// of their bytes.
	pullMost  = 512
	pullBytes = 64 << 20
	// mostWait is the time after which a pull request expires and is sent again. While it is
	// pending, the broker sends a heartbeat every beat.
	mostWait = 20 * time.Second
	beat     = 2 * time.Second
)

// A pull sends pull requests, one at a time, and receives the messages. An abandoned request may
// still deliver messages; they are returned to the queue.
type pull struct {
	w     *work
	sub   *client.Subscription
	inbox string
	asked atomic.Uint64 // number of the last request
	since atomic.Int64  // send time, since start, of the oldest request that may still deliver
	got   chan arrival
	// wanted reports whether a receiver uses the pull. Messages that arrive while it is false must
	// be returned to the queue; otherwise this process would extend them forever without a
	// receiver.
	wanted atomic.Bool
}

// An arrival is a message, or a status that ends a request.
type arrival struct {
	h      *held // nil for a status
	status string
	of     uint64 // number of the request that the status ends
	left   int    // number of values that the request did not deliver
}

func (w *work) newPull() (*pull, error) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		p := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		p.wanted.Store(true)
		return p, nil
	}
	w.mu.Unlock()
	p := &pull{w: w, inbox: w.c.nc.NewInbox() + ".", got: make(chan arrival, 2*pullMost)}
	p.wanted.Store(true)
	var err error
	if p.sub, err = w.c.nc.Subscribe(p.inbox+"*", p.arrived); err != nil {
		return nil, err
	}
	return p, p.sub.SetPendingLimits(-1, -1)
}

// rest keeps a pull without a pending request for reuse by [work.newPull].
func (w *work) rest(p *pull) {
	p.unwanted()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		p.sub.Unsubscribe()
		return
	}
	w.idle = append(w.idle, p)
}

// arrived handles a message as soon as it arrives, because from then on this process must send
// heartbeats for it.
func (p *pull) arrived(m *client.Msg) {
	status := ""
	if len(m.Data) == 0 && m.Header != nil {
		status = m.Header.Get("Status")
	}
	if status == "" {
		p.got <- arrival{h: p.w.hold(m, p.since.Load())}
		if !p.wanted.Load() {
			p.unwanted()
		}
		return
	}
	left, _ := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	of, _ := strconv.ParseUint(strings.TrimPrefix(m.Subject, p.inbox), 36, 64)
	if m.Header.Get("Description") != "Batch Completed" { // a complete batch needs no status
		p.got <- arrival{status: status, of: of, left: left}
	}
}

// ask sends a pull request for up to n messages. If wait is 0, the broker answers immediately with
// the available ones. alone must be true only if no earlier request can still deliver messages.
func (p *pull) ask(n int, wait time.Duration, alone bool) error {
	var q []byte
	switch {
	case wait <= 0:
		q = fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"no_wait":true}`, n, pullBytes)
	case wait > 2*beat:
		q = fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`, n, pullBytes, wait, beat)
	default:
		q = fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d}`, n, pullBytes, wait)
	}
	if alone {
		p.since.Store(sinceStart())
	}
	next := "$JS.API.CONSUMER.MSG.NEXT." + p.w.config.Name + "." + consumerName
	return p.w.c.nc.PublishRequest(next, p.inbox+strconv.FormatUint(p.asked.Add(1), 36), q)
}

// Status codes of a pull request; a beat does not end it.
const (
	statusBeat    = "100"
	statusNone    = "404"
	statusTimeout = "408"
	statusChanged = "409" // the leader changed, or the request was cancelled
	statusNobody  = "503"
)

// unwanted returns messages that have arrived, and those that still arrive, to the queue until the
// pull is used again. [pull.arrived] sends an arrival to the channel before it loads wanted, so one
// of the two functions handles it.
func (p *pull) unwanted() {
	p.wanted.Store(false)
	for {
		select {
		case a := <-p.got:
			if a.h != nil {
				p.w.giveBack(a.h, 0)
			}
		default:
			return
		}
	}
}

// drain abandons the request and returns messages that it still delivers to the queue. The pull
// must not be used afterwards.
func (p *pull) drain() {
	p.unwanted()
	if p.sub.Drain() != nil { // not connected
		p.sub.Unsubscribe()
	}
}

// errNone is returned if a request ended without a message.
var errNone = errors.New("nats: nothing")

// receive returns the next message of the current request. It returns [errNone] if the request
// ended without one, and [errCut] if the caller must send the request again.
func (p *pull) receive(ctx context.Context, cut <-chan struct{}, silence time.Duration) (*held, error) {
	for {
		a, err := p.next(ctx, cut, silence)
		if err != nil || a.h != nil {
			return a.h, err
		}
		if a.of != p.asked.Load() { // status of an earlier, complete request
			continue
		}
		switch a.status {
		case statusBeat:
		case statusNone, statusTimeout:
			return nil, errNone
		default:
			return nil, errCut
		}
	}
}

// next returns the next arrival.
func (p *pull) next(ctx context.Context, cut <-chan struct{}, silence time.Duration) (a arrival, err error) {
	select { // fast path: it is buffered
	case a = <-p.got:
		return a, nil
	default:
	}
	t := time.NewTimer(silence)
	defer t.Stop()
	select {
	case a = <-p.got:
		return a, nil
	case <-ctx.Done():
		return a, context.Cause(ctx)
	case <-p.w.closing:
		return a, ErrClosed
	case <-cut:
		return a, errCut
	case <-p.w.finishing():
		return a, errCut // retry with the short expiry of a finished queue
	case <-t.C:
		return a, errCut
	}
}

// finishing returns a channel that is closed when the queue is finished, or nil if it is finished
// already.
func (w *work) finishing() <-chan struct{} {
	if isClosed(w.finished) {
		return nil
	}
	return w.finished
}

// take receives one message, and waits for it if wait is true. It returns [ErrEmpty], [ErrClosed]
// or the cause of ctx.
func (w *work) take(ctx context.Context, wait bool) (*held, error) {
	w.mu.Lock()
	w.lastGet = time.Now()
	w.waiting++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.waiting--
		w.mu.Unlock()
	}()
	if w.prefetch > 0 {
		return w.takeAhead(ctx, wait)
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		h, err := w.takeOne(ctx, wait)
		switch {
		case err == nil && h.expired():
			w.settle(h) // delayed in transit, and redelivered meanwhile
			continue
		case err == nil:
			return h, nil
		case errors.Is(err, errNone):
			if err := w.over(ctx); err != nil {
				return nil, err
			}
			if !wait {
				return nil, ErrEmpty
			}
			pause = leastPause
			continue
		case !errors.Is(err, errCut) || ctx.Err() != nil:
			return nil, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// takeOne sends one pull request for one message and waits for the result.
func (w *work) takeOne(ctx context.Context, wait bool) (*held, error) {
	if err := w.c.connected(ctx); err != nil {
		return nil, err
	}
	cut := w.c.session()
	p, err := w.newPull()
	if err != nil {
		return nil, errCut
	}
	expires, silence := w.patience(ctx, wait)
	if err := p.ask(1, expires, true); err != nil {
		w.rest(p)
		return nil, errCut
	}
	h, err := p.receive(ctx, cut, silence)
	w.tell(err, cut)
	if err == nil || errors.Is(err, errNone) {
		w.rest(p)
	} else {
		p.drain()
	}
	return h, err
}

// tell records whether the broker answered a pull request.
func (w *work) tell(err error, cut <-chan struct{}) {
	switch {
	case err == nil || errors.Is(err, errNone):
		w.c.heard()
	case errors.Is(err, errCut) && !isClosed(cut):
		w.c.unheard()
	}
}

// patience returns the expiry of a pull request, and the silence after which the caller should send
// it again.
func (w *work) patience(ctx context.Context, wait bool) (expires, silence time.Duration) {
	if !wait {
		return 0, w.c.timeout
	}
	expires = w.longest()
	if deadline, ok := ctx.Deadline(); ok {
		expires = max(min(expires, time.Until(deadline)), time.Millisecond)
	}
	if expires > 2*beat {
		return expires, 2*beat + w.c.timeout/2
	}
	return expires, expires + w.c.timeout
}

// longest returns the maximum expiry of a pull request. It is short for a finished queue, so that
// receivers soon notice that all values are acknowledged. It is also short if the announcement of
// Finish may have been missed during a disconnection: the announcement is not repeated, so
// [work.over] must poll for it.
func (w *work) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isClosed(w.finished) || w.heard != w.c.session() {
		return beat / 4
	}
	return mostWait
}

// hears records that announcements of Finish are received in this session.
func (w *work) hears(session <-chan struct{}) {
	w.mu.Lock()
	w.heard = session
	w.mu.Unlock()
}

// over returns [ErrClosed] if the queue is finished and all values are acknowledged.
func (w *work) over(ctx context.Context) error {
	if !isClosed(w.finished) {
		session := w.c.session()
		s, err := w.c.stream(ctx, w.config.Name)
		if err != nil {
			return nil // the caller retries
		}
		if !isFinished(s.CachedInfo().Config) {
			w.hears(session)
			return nil
		}
		w.end()
	}
	waiting, taken, err := w.counts(ctx)
	if err == nil && waiting == 0 && taken == 0 {
		return ErrClosed
	}
	return nil
}

// takeSome receives available messages, up to n, without waiting, and calls use with each as it
// arrives. If use returns false, takeSome returns the remaining messages to the queue.
func (w *work) takeSome(ctx context.Context, n int, use func(*held) bool) error {
	if err := w.c.connected(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.lastGet = time.Now()
	w.mu.Unlock()
	cut := w.c.session()
	p, err := w.newPull()
	if err != nil {
		return err
	}
	n = min(n, pullMost)
	if err := p.ask(n, 0, true); err != nil {
		w.rest(p)
		return nil
	}
	for range n {
		h, err := p.receive(ctx, cut, w.c.timeout)
		switch {
		case errors.Is(err, errNone):
			w.rest(p)
			return nil
		case err != nil:
			p.drain()
			if errors.Is(err, errCut) {
				err = nil
			}
			return err
		case h.expired():
			w.settle(h)
		case !use(h):
			p.drain()
			return nil
		}
	}
	w.rest(p)
	return nil
}

// takeAhead is [work.take] for a queue with Prefetch. It requests more messages than it returns.
func (w *work) takeAhead(ctx context.Context, wait bool) (*held, error) {
	w.mu.Lock()
	w.getters++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.getters--
		w.lastGet = time.Now()
		w.mu.Unlock()
	}()
	for pause := leastPause; ; {
		if err := w.c.connected(ctx); err != nil {
			return nil, err
		}
		cut := w.c.session()
		p, err := w.askAhead()
		if err != nil {
			return nil, err
		}
		if p == nil { // not connected
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
			continue
		}
		if !wait && len(p.got) == 0 {
			return w.takeNow(ctx)
		}
		_, silence := w.patience(ctx, true)
		h, err := p.receiveAhead(ctx, cut, silence)
		w.tell(err, cut)
		switch {
		case err == nil && h.expired():
			w.settle(h) // redelivered to another receiver meanwhile
		case err == nil:
			return h, nil
		case errors.Is(err, errNone):
			if err := w.over(ctx); err != nil {
				return nil, err
			}
		case errors.Is(err, errCut) && ctx.Err() == nil:
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
			pause = min(2*pause, mostPause)
		default:
			return nil, err
		}
	}
}

// takeNow is used by takeAhead if it must not wait and no message is buffered.
func (w *work) takeNow(ctx context.Context) (*held, error) {
	var found *held
	err := w.takeSome(ctx, 1, func(h *held) bool { found = h; return true })
	if err == nil && found == nil {
		if err = w.over(ctx); err == nil {
			err = ErrEmpty
		}
	}
	return found, err
}

// askAhead tops up the prefetch window with another request if it is more than half empty. It
// returns the shared pull, or nil if there is no connection.
func (w *work) askAhead() (*pull, error) {
	w.mu.Lock()
	p, more := w.ahead, w.prefetch+1-w.asked
	if w.closed {
		w.mu.Unlock()
		return nil, ErrClosed
	}
	w.mu.Unlock()
	if p == nil {
		made, err := w.newPull()
		if err != nil {
			return nil, nil
		}
		w.mu.Lock()
		if w.ahead == nil {
			w.ahead, w.asked = made, 0
			w.mu.Unlock()
		} else {
			w.mu.Unlock()
			w.rest(made)
		}
		return w.askAhead()
	}
	if more <= w.prefetch/2 {
		return p, nil
	}
	w.mu.Lock()
	more = w.prefetch + 1 - w.asked - len(p.got)
	if more <= 0 || w.ahead != p {
		w.mu.Unlock()
		return p, nil
	}
	alone := w.asked == 0
	w.asked += more
	w.mu.Unlock()
	if err := p.ask(more, w.longest(), alone); err != nil {
		w.mu.Lock()
		w.asked -= more
		w.mu.Unlock()
		return nil, nil
	}
	return p, nil
}

// receiveAhead receives from the shared pull. If the number of outstanding messages becomes
// unknown, it detaches the pull: the next caller makes a new one, and late messages of the old one
// are returned to the queue.
func (p *pull) receiveAhead(ctx context.Context, cut <-chan struct{}, silence time.Duration) (*held, error) {
	w := p.w
	for {
		a, err := p.next(ctx, cut, silence)
		if err == nil && a.status == statusBeat {
			continue
		}
		w.mu.Lock()
		switch {
		case err == nil && a.h != nil:
			w.asked = max(0, w.asked-1)
		case err == nil && (a.status == statusNone || a.status == statusTimeout):
			w.asked, err = max(0, w.asked-a.left), errNone
		case err == nil || errors.Is(err, errCut):
			if err = errCut; w.ahead == p {
				w.ahead, w.asked = nil, 0
				defer p.drain()
			}
		}
		w.mu.Unlock()
		return a.h, err
	}
}
