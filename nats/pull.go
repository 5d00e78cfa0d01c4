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

// A pull sends pull requests, one at a time, and receives the messages. One goroutine at a time
// may use it, except for the shared pull of a queue with Prefetch. An abandoned request may
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
	if p.sub, err = w.c.nc.Subscribe(p.inbox+"*", p.handleArrival); err != nil {
		return nil, err
	}
	return p, p.sub.SetPendingLimits(-1, -1)
}

// cachePull keeps a pull without a pending request for reuse by [work.newPull], or ends its
// subscription if the queue is closed. The caller must not use p afterwards.
func (w *work) cachePull(p *pull) {
	p.returnArrivals()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		p.sub.Unsubscribe()
		return
	}
	w.idle = append(w.idle, p)
}

// handleArrival handles a message as soon as it arrives, because from then on this process must
// send heartbeats for it. The client library calls it for one message at a time.
func (p *pull) handleArrival(m *client.Msg) {
	status := ""
	if len(m.Data) == 0 && m.Header != nil {
		status = m.Header.Get("Status")
	}
	if status == "" {
		p.got <- arrival{h: p.w.trackMessage(m, p.since.Load())}
		if !p.wanted.Load() {
			p.returnArrivals()
		}
		return
	}
	left, _ := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	of, _ := strconv.ParseUint(strings.TrimPrefix(m.Subject, p.inbox), 36, 64)
	if m.Header.Get("Description") != "Batch Completed" { // a complete batch needs no status
		p.got <- arrival{status: status, of: of, left: left}
	}
}

// requestMessages sends a pull request for up to n messages, which expires after wait. If wait
// is 0, the broker answers immediately with the available ones. alone must be true only if no
// earlier request can still deliver messages.
func (p *pull) requestMessages(n int, wait time.Duration, alone bool) error {
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

// returnArrivals returns messages that have arrived, and those that still arrive, to the queue
// until the pull is used again. [pull.handleArrival] sends an arrival to the channel before it
// loads wanted, so one of the two functions handles it.
func (p *pull) returnArrivals() {
	p.wanted.Store(false)
	for {
		select {
		case a := <-p.got:
			if a.h != nil {
				p.w.nakMessage(a.h, 0)
			}
		default:
			return
		}
	}
}

// abandonRequest abandons the request and returns messages that it still delivers to the queue. The
// pull must not be used afterwards.
func (p *pull) abandonRequest() {
	p.returnArrivals()
	if p.sub.Drain() != nil { // not connected
		p.sub.Unsubscribe()
	}
}

// errNone is returned if a request ended without a message.
var errNone = errors.New("nats: nothing")

// receive returns the next message of the current request. It returns [errNone] if the request
// ended without one, and [errCut] if the caller must send the request again: cut is closed,
// nothing arrived for the duration silence, or the queue was finished. It returns [ErrClosed] if
// the queue is closed, and the cause of ctx.
func (p *pull) receive(ctx context.Context, cut <-chan struct{}, silence time.Duration) (*held, error) {
	for {
		a, err := p.nextArrival(ctx, cut, silence)
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

// nextArrival returns the next message or status. Its errors are those that [pull.receive]
// returns, without errNone.
func (p *pull) nextArrival(ctx context.Context, cut <-chan struct{}, silence time.Duration) (a arrival, err error) {
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
	case <-p.w.finishedChannel():
		return a, errCut // retry with the short expiry of a finished queue
	case <-t.C:
		return a, errCut
	}
}

// finishedChannel returns a channel that is closed when the queue is finished, or nil if it is
// finished already.
func (w *work) finishedChannel() <-chan struct{} {
	if isClosed(w.finished) {
		return nil
	}
	return w.finished
}

// receiveMessage receives one message, and waits for it if wait is true. The caller must
// acknowledge the message or return it to the queue. The error is [ErrEmpty] if wait is false
// and there is no message, [ErrClosed] if the queue is closed or finished and empty, the cause
// of ctx, or an error of the connection.
func (w *work) receiveMessage(ctx context.Context, wait bool) (*held, error) {
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
		return w.receivePrefetched(ctx, wait)
	}
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		h, err := w.pullMessage(ctx, wait)
		switch {
		case err == nil && h.isExpired():
			w.untrackMessage(h) // delayed in transit, and redelivered meanwhile
			continue
		case err == nil:
			return h, nil
		case errors.Is(err, errNone):
			if err := w.checkFinished(ctx); err != nil {
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

// pullMessage sends one pull request for one message and waits for the result. Its errors are
// the errors of [Conn.awaitConnection] and [pull.receive].
func (w *work) pullMessage(ctx context.Context, wait bool) (*held, error) {
	if err := w.c.awaitConnection(ctx); err != nil {
		return nil, err
	}
	cut := w.c.sessionDone()
	p, err := w.newPull()
	if err != nil {
		return nil, errCut
	}
	expires, silence := w.pullTimeouts(ctx, wait)
	if err := p.requestMessages(1, expires, true); err != nil {
		w.cachePull(p)
		return nil, errCut
	}
	h, err := p.receive(ctx, cut, silence)
	w.recordPull(err, cut)
	if err == nil || errors.Is(err, errNone) {
		w.cachePull(p)
	} else {
		p.abandonRequest()
	}
	return h, err
}

// recordPull records whether the broker answered a pull request, given the error of its result
// and the session of its sending.
func (w *work) recordPull(err error, cut <-chan struct{}) {
	switch {
	case err == nil || errors.Is(err, errNone):
		w.c.recordResponse()
	case errors.Is(err, errCut) && !isClosed(cut):
		w.c.recordSilence()
	}
}

// pullTimeouts returns the expiry of a pull request, and the silence after which the caller
// should send it again. The expiry is 0 if wait is false, and ends no later than the deadline of
// ctx.
func (w *work) pullTimeouts(ctx context.Context, wait bool) (expires, silence time.Duration) {
	if !wait {
		return 0, w.c.timeout
	}
	expires = w.maxExpiry()
	if deadline, ok := ctx.Deadline(); ok {
		expires = max(min(expires, time.Until(deadline)), time.Millisecond)
	}
	if expires > 2*beat {
		return expires, 2*beat + w.c.timeout/2
	}
	return expires, expires + w.c.timeout
}

// maxExpiry returns the maximum expiry of a pull request. It is short for a finished queue, so that
// receivers soon notice that all values are acknowledged. It is also short if the announcement of
// Finish may have been missed during a disconnection: the announcement is not repeated, so
// [work.checkFinished] must poll for it.
func (w *work) maxExpiry() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isClosed(w.finished) || w.heard != w.c.sessionDone() {
		return beat / 4
	}
	return mostWait
}

// markSubscribed records that announcements of Finish are received in this session.
func (w *work) markSubscribed(session <-chan struct{}) {
	w.mu.Lock()
	w.heard = session
	w.mu.Unlock()
}

// checkFinished returns [ErrClosed] if the queue is finished and all values are acknowledged. It
// returns nil otherwise, also if the broker does not answer.
func (w *work) checkFinished(ctx context.Context) error {
	if !isClosed(w.finished) {
		session := w.c.sessionDone()
		s, err := w.c.lookupStream(ctx, w.config.Name)
		if err != nil {
			return nil // the caller retries
		}
		if !isFinished(s.CachedInfo().Config) {
			w.markSubscribed(session)
			return nil
		}
		w.markFinished()
	}
	waiting, taken, err := w.countValues(ctx)
	if err == nil && waiting == 0 && taken == 0 {
		return ErrClosed
	}
	return nil
}

// pullAvailable receives available messages, up to n, without waiting, and calls use with each as
// it arrives. use owns the message, also if it returns false. pullAvailable then stops and returns
// the other messages to the queue. It returns nil if there are no more messages or the connection
// was lost. Otherwise it returns the error of ctx or of the connection.
func (w *work) pullAvailable(ctx context.Context, n int, use func(*held) bool) error {
	if err := w.c.awaitConnection(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.lastGet = time.Now()
	w.mu.Unlock()
	cut := w.c.sessionDone()
	p, err := w.newPull()
	if err != nil {
		return err
	}
	n = min(n, pullMost)
	if err := p.requestMessages(n, 0, true); err != nil {
		w.cachePull(p)
		return nil
	}
	for range n {
		h, err := p.receive(ctx, cut, w.c.timeout)
		switch {
		case errors.Is(err, errNone):
			w.cachePull(p)
			return nil
		case err != nil:
			p.abandonRequest()
			if errors.Is(err, errCut) {
				err = nil
			}
			return err
		case h.isExpired():
			w.untrackMessage(h)
		case !use(h):
			p.abandonRequest()
			return nil
		}
	}
	w.cachePull(p)
	return nil
}

// receivePrefetched is [work.receiveMessage] for a queue with Prefetch. It requests more
// messages than it returns, and leaves the others in the shared pull.
func (w *work) receivePrefetched(ctx context.Context, wait bool) (*held, error) {
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
		if err := w.c.awaitConnection(ctx); err != nil {
			return nil, err
		}
		cut := w.c.sessionDone()
		p, err := w.extendPrefetch()
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
			return w.tryPull(ctx)
		}
		_, silence := w.pullTimeouts(ctx, true)
		h, err := p.receivePrefetched(ctx, cut, silence)
		w.recordPull(err, cut)
		switch {
		case err == nil && h.isExpired():
			w.untrackMessage(h) // redelivered to another receiver meanwhile
		case err == nil:
			return h, nil
		case errors.Is(err, errNone):
			if err := w.checkFinished(ctx); err != nil {
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

// tryPull receives one message without waiting, for receivePrefetched when no message is
// buffered. It returns [ErrEmpty] if there is none, and [ErrClosed] if the queue is finished and
// empty.
func (w *work) tryPull(ctx context.Context) (*held, error) {
	var found *held
	err := w.pullAvailable(ctx, 1, func(h *held) bool { found = h; return true })
	if err == nil && found == nil {
		if err = w.checkFinished(ctx); err == nil {
			err = ErrEmpty
		}
	}
	return found, err
}

// extendPrefetch tops up the prefetch window with another request if it is more than half empty.
// It returns the shared pull, or nil without an error if there is no connection. It returns
// [ErrClosed] if the queue is closed.
func (w *work) extendPrefetch() (*pull, error) {
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
			w.cachePull(made)
		}
		return w.extendPrefetch()
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
	if err := p.requestMessages(more, w.maxExpiry(), alone); err != nil {
		w.mu.Lock()
		w.asked -= more
		w.mu.Unlock()
		return nil, nil
	}
	return p, nil
}

// receivePrefetched receives from the shared pull; its errors are as for [pull.receive]. If the
// number of outstanding messages becomes unknown, it detaches the pull: the next caller makes a
// new one, and late messages of the old one are returned to the queue.
func (p *pull) receivePrefetched(ctx context.Context, cut <-chan struct{}, silence time.Duration) (*held, error) {
	w := p.w
	for {
		a, err := p.nextArrival(ctx, cut, silence)
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
				defer p.abandonRequest()
			}
		}
		w.mu.Unlock()
		return a.h, err
	}
}
