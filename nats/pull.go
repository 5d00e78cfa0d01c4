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
	// pullMost is how many values are asked for at a time, and pullBytes how many bytes of them.
	pullMost  = 512
	pullBytes = 64 << 20
	// A question is asked again after mostWait; meanwhile the broker says every beat that it has
	// not forgotten it.
	mostWait = 20 * time.Second
	beat     = 2 * time.Second
)

// A pull asks for messages, one question at a time. A question that is given up may still bring
// some. These go back to the queue.
type pull struct {
	w     *work
	sub   *client.Subscription
	inbox string
	asked atomic.Uint64 // number of the last question
	since atomic.Int64  // when the oldest question was asked that may bring something, since start
	got   chan arrival
	// wanted says that somebody receives. What arrives otherwise goes back: this process would say
	// for ever that it lives, of a value that nobody gets.
	wanted atomic.Bool
}

// An arrival is a message, or what ends a question.
type arrival struct {
	h      *held // nil for what ends it
	status string
	of     uint64 // the question that it ends
	left   int    // values that the question did not bring
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

// rest keeps a pull whose question has ended for the next one.
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

// arrived takes a message as soon as it comes: from then on this process has to say that it lives.
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
	if m.Header.Get("Description") != "Batch Completed" { // it has brought all
		p.got <- arrival{status: status, of: of, left: left}
	}
}

// ask asks for up to n messages. With a wait of 0 the broker says at once how many there are. alone
// says that no question before this one may still bring any.
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

// Statuses that end a question, or do not.
const (
	statusBeat    = "100"
	statusNone    = "404"
	statusTimeout = "408"
	statusChanged = "409" // the leader, or what was asked for is over
	statusNobody  = "503"
)

// unwanted gives back what has arrived and what still arrives, until the pull is used again. An
// arrival is in the channel before it is looked whether it is wanted, so one of the two sees it.
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

// drain gives a question up, and back what it still brings.
func (p *pull) drain() {
	p.unwanted()
	if p.sub.Drain() != nil { // there is no connection
		p.sub.Unsubscribe()
	}
}

// errNone is why a question has brought nothing.
var errNone = errors.New("nats: nothing")

// receive returns the next message of a question, or why there is none: errNone at its end, errCut
// where it has to be asked again.
func (p *pull) receive(ctx context.Context, cut <-chan struct{}, silence time.Duration) (*held, error) {
	for {
		a, err := p.next(ctx, cut, silence)
		if err != nil || a.h != nil {
			return a.h, err
		}
		if a.of != p.asked.Load() { // of one before, which had brought all
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

// next returns what arrives next.
func (p *pull) next(ctx context.Context, cut <-chan struct{}, silence time.Duration) (a arrival, err error) {
	select { // most often it is there
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
		return a, errCut // it asks for as long as a finished queue may have something
	case <-t.C:
		return a, errCut
	}
}

// finishing returns a channel that is closed when the queue is finished, nil if it is already.
func (w *work) finishing() <-chan struct{} {
	if isClosed(w.finished) {
		return nil
	}
	return w.finished
}

// take takes one message, and waits for it unless wait is false. The error is ErrEmpty, ErrClosed,
// or why ctx ended.
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
			w.settle(h) // it was long on its way, and another has it by now
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

// takeOne asks one question.
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

// tell says whether the broker has answered a question.
func (w *work) tell(err error, cut <-chan struct{}) {
	switch {
	case err == nil || errors.Is(err, errNone):
		w.c.heard()
	case errors.Is(err, errCut) && !isClosed(cut):
		w.c.unheard()
	}
}

// patience is how long a question waits at the broker, and after which silence it is asked again.
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

// longest is how long a question may wait at the broker. Of a finished queue it is to be seen soon
// that all is acknowledged. While the connection was cut, the news may have gone by that the queue
// is finished, which nobody repeats: then the question ends soon, and over is asked.
func (w *work) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if isClosed(w.finished) || w.heard != w.c.session() {
		return beat / 4
	}
	return mostWait
}

// hears says that news of this session are heard.
func (w *work) hears(session <-chan struct{}) {
	w.mu.Lock()
	w.heard = session
	w.mu.Unlock()
}

// over returns ErrClosed if the queue is finished and all is acknowledged.
func (w *work) over(ctx context.Context) error {
	if !isClosed(w.finished) {
		session := w.c.session()
		s, err := w.c.stream(ctx, w.config.Name)
		if err != nil {
			return nil // it will be asked again
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

// takeSome takes as many messages as there are, up to n, without waiting, and has each used as soon
// as it comes. use returns false to have no more; those that are under way go back.
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

// takeAhead is take of a process that asks for more than it gets.
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
		if p == nil { // there is no connection
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
			w.settle(h) // another has it by now
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

// takeNow is takeAhead that does not wait and finds nothing here.
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

// askAhead has more values brought, if few are on the way, and returns the pull that brings them.
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

// receiveAhead is receive of the pull that all share. Where it is unknown what is still to come,
// another pull asks for it, and late values of this one go back.
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
