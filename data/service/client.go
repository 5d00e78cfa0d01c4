package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/tcp"
	"github.com/shoal-mp/shoal/shm"
)

// A client manages the connections of a trainer to its data hosts. If a host fails, the client
// sends its pending requests to the other hosts.
type client struct {
	opts  Options
	peers []*peer
	ctx   context.Context
	end   context.CancelCauseFunc
	done  sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}     // closed when a host connects, disconnects or answers
	served  *hello            // identity that all hosts must serve
	by      string            // address of the first host that was reached
	ledger  string            // id of the dealer's ledger
	name    string            // random name of this trainer, for the dealer
	working map[batchKey]bool // batches dealt to this trainer and not acknowledged
	open    map[part]*peer    // host that reads each part of a Stream
	id      uint64
}

// A peer is a data host. Its fields other than addr are guarded by the client's mu.
type peer struct {
	addr    string
	conn    *ipc.Conn[frame] // nil if not connected
	pending map[uint64]chan answer
	err     error // reason why it is not connected
	tried   bool  // whether a connection was attempted
	open    int   // number of parts of a Stream that it reads
	status  HostStatus
}

// An answer is the result of a request.
type answer struct {
	frame
	err error // set if the connection was lost
}

// dial starts to connect to the hosts and waits until each was tried. The caller must close the
// client. Errors are as with [Dial].
func dial(ctx context.Context, opts Options, addrs []string) (*client, error) {
	opts, err := opts.withDefaults(len(addrs))
	if err != nil {
		return nil, err
	}
	c := &client{opts: opts, changed: make(chan struct{}), name: rand.Text(), working: make(map[batchKey]bool),
		open: make(map[part]*peer)}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	for _, addr := range addrs {
		p := &peer{addr: addr, pending: make(map[uint64]chan answer), err: errNotYet}
		c.peers = append(c.peers, p)
		c.done.Go(func() { c.maintainConnection(p) })
	}
	if err := c.awaitConnections(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

var errNotYet = errors.New("not connected yet")

// awaitConnections waits until a connection to each host was attempted. It returns nil if at
// least one host is connected and none failed with a fatal error (see [isFatal]). It returns a
// fatal error, an error that wraps [ErrNoHost], or the cause of ctx.
func (c *client) awaitConnections(ctx context.Context) error {
	for {
		c.mu.Lock()
		changed, tried, up := c.changed, 0, 0
		var wrong []error
		for _, p := range c.peers {
			if p.tried {
				tried++
			}
			if p.conn != nil {
				up++
			} else if p.tried && isFatal(p.err) {
				wrong = append(wrong, p.err)
			}
		}
		c.mu.Unlock()
		switch {
		case len(wrong) > 0:
			return wrong[0]
		case tried == len(c.peers) && up > 0:
			return nil
		case tried == len(c.peers):
			return c.noHostError()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// noHostError returns a [*HostError] that wraps [ErrNoHost] and the error of each host. The
// caller must not hold c.mu.
func (c *client) noHostError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []error
	var names []string
	for _, p := range c.peers {
		all = append(all, p.err)
		names = append(names, p.addr)
	}
	return &HostError{Host: strings.Join(names, ", "), Err: fmt.Errorf("%w: %w", ErrNoHost, errors.Join(all...)),
		Advice: "restart one of them, or check the addresses and the firewall"}
}

// wakeWaiters wakes the goroutines that wait for a host. The caller must hold c.mu.
func (c *client) wakeWaiters() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Limits of the exponential backoff between connection attempts.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = 2 * time.Second
)

// maintainConnection connects to a host and reconnects with exponential backoff until the client is
// closed.
func (c *client) maintainConnection(p *peer) {
	wait := firstWait
	for c.ctx.Err() == nil {
		conn, err := c.connectHost(p)
		if err == nil {
			wait = firstWait
			err = c.receiveFrames(p, conn)
		}
		c.handleLost(p, conn, err)
		select {
		case <-time.After(wait):
			wait = min(2*wait, mostWait)
		case <-c.ctx.Done():
		}
	}
}

// receiveFrames receives frames from a host until the connection is lost. If the host is the
// dealer, it also reclaims dealt batches and sends heartbeats. It returns the error that ended
// the connection.
func (c *client) receiveFrames(p *peer, conn *ipc.Conn[frame]) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if c.opts.Dynamic && p == c.peers[0] {
		c.done.Go(func() {
			c.reclaimBatches(conn)
			c.sendHeartbeats(ctx, conn)
		})
	}
	return c.receive(p, conn)
}

// connectHost connects to a host, verifies its hello frame and registers the connection, which
// the caller must close. It takes at most Patience. The error wraps [ErrSilent], [ErrMismatch],
// [ErrLedger] or an error of package ipc.
func (c *client) connectHost(p *peer) (*ipc.Conn[frame], error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Patience)
	defer cancel()
	conn, err := ipc.DialWith[frame](ctx, "tcp://"+p.addr, c.opts.Key, ipc.MeetingOptions{Transport: tcp.Options{
		TLS: c.opts.TLS, Fingerprint: c.opts.Fingerprint, Unencrypted: c.opts.Unencrypted}})
	if err != nil {
		return nil, err
	}
	f, err := conn.Recv(ctx)
	var h hello
	switch {
	case err != nil && ctx.Err() != nil:
		err = ErrSilent
	case err != nil:
	case f.Kind != frameHello || h.decode(f.Body) != nil:
		f.batch().Close()
		err = fmt.Errorf("%w: missing description of the served data", ipc.ErrPeer)
	case h.Version != version:
		err = fmt.Errorf("%w: got protocol version %d, want %d", ipc.ErrPeer, h.Version, version)
	}
	if err == nil {
		err = c.registerHost(p, h, conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// registerHost verifies that a host serves the same data as the others, and registers its
// connection. It returns [ErrMismatch] or [ErrLedger] otherwise.
func (c *client) registerHost(p *peer, h hello, conn *ipc.Conn[frame]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		c.served, c.by = &h, p.addr
	}
	if what := h.differenceTo(*c.served); what != "" {
		return fmt.Errorf("%w: %s as on %s", ErrMismatch, what, c.by)
	}
	if c.opts.Dynamic && p == c.peers[0] {
		if c.ledger != "" && c.ledger != h.Ledger {
			return fmt.Errorf("%w: the data host that assigns the batches has started another one", ErrLedger)
		}
		c.ledger = h.Ledger
	}
	if p.status.Losses > 0 {
		slog.Info("data service: data host reconnected", "host", p.addr)
	}
	p.conn, p.err, p.tried, p.status.Connected = conn, nil, true, true
	c.wakeWaiters()
	return nil
}

// receive dispatches the frames of a host to pending requests. It returns the error that ended the
// connection.
func (c *client) receive(p *peer, conn *ipc.Conn[frame]) error {
	for {
		f, err := c.receiveFrame(conn)
		if err != nil {
			return err
		}
		if f.Kind == frameBeat {
			continue
		}
		c.mu.Lock()
		ch := p.pending[f.ID]
		delete(p.pending, f.ID)
		if f.Kind == frameBatch && f.hasBatch() {
			p.status.Batches++
			for _, t := range f.Tensors {
				p.status.Bytes += t.Nbytes()
			}
		}
		c.mu.Unlock()
		if ch == nil { // the request was cancelled
			c.discardAnswer(conn, f)
			continue
		}
		ch <- answer{frame: f}
	}
}

// receiveFrame receives a frame. It returns [ErrSilent] if the frame does not start within
// Patience, or does not arrive completely within Patience of its start.
func (c *client) receiveFrame(conn *ipc.Conn[frame]) (f frame, err error) {
	for _, step := range []func(ctx context.Context) error{
		conn.Poll,
		func(ctx context.Context) error { f, err = conn.Recv(ctx); return err },
	} {
		ctx, cancel := context.WithTimeout(c.ctx, c.opts.Patience)
		err := step(ctx)
		late := ctx.Err() != nil && c.ctx.Err() == nil
		cancel()
		if err != nil && late {
			return f, fmt.Errorf("%w for %v: %w", ErrSilent, c.opts.Patience, context.DeadlineExceeded)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// handleLost handles a lost connection, or a failed attempt to connect if conn is nil. It closes
// conn and fails the pending requests of the host, so that [client.fetch] sends them to other
// hosts.
func (c *client) handleLost(p *peer, conn *ipc.Conn[frame], err error) {
	if conn != nil {
		conn.Close()
	}
	lost := hostError(p.addr, err)
	c.mu.Lock()
	if c.ctx.Err() == nil && p.conn != nil {
		p.status.Losses++
		slog.Warn("data service: data host lost; the others serve its batches", "host", p.addr, "error", err)
	} else if c.ctx.Err() == nil && p.tried && isFatal(err) && !isFatal(p.err) {
		slog.Warn("data service: data host unusable", "host", p.addr, "error", lost)
	}
	p.conn, p.err, p.tried, p.status.Connected = nil, lost, true, false
	pending := p.pending
	p.pending = make(map[uint64]chan answer)
	c.wakeWaiters()
	c.mu.Unlock()
	for _, ch := range pending {
		ch <- answer{err: lost}
	}
}

// close closes all connections and waits for the client's goroutines.
func (c *client) close() error {
	c.end(data.ErrClosed)
	c.mu.Lock()
	for _, p := range c.peers {
		if p.conn != nil {
			p.conn.Close()
		}
	}
	c.mu.Unlock()
	c.done.Wait()
	return nil
}

// fetch requests a batch and returns the answer. The caller must close the batch in it. fetch tries
// another host if the connection is lost, or if a host fails to make the batch, for example because
// a file is missing there. If all hosts fail, it returns the error of the first one. Otherwise the
// error is the cause of ctx or [data.ErrClosed], or wraps [ErrNoHost] if no host connects within
// Patience, or [shm.ErrNoSpace].
func (c *client) fetch(ctx context.Context, q frame) (frame, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })()
	failed := make(map[*peer]error)
	var first error
	var full time.Time // since when shared memory is full
	for {
		p, ch, id, err := c.sendRequest(ctx, q, failed)
		if err != nil && first != nil && !errors.Is(err, context.Cause(ctx)) {
			return frame{}, first
		}
		if err != nil {
			return frame{}, err
		}
		a, err := c.awaitAnswer(ctx, p, ch, id)
		switch {
		case err != nil:
			return frame{}, err
		case errors.Is(a.err, shm.ErrNoSpace): // on this machine
			if full.IsZero() {
				full = time.Now()
			}
			if time.Since(full) > c.opts.Patience {
				return frame{}, fmt.Errorf("receive a batch: %w", a.err)
			}
			if err := sleep(ctx, firstWait); err != nil {
				return frame{}, err
			}
		case a.err != nil: // connection lost; try another host
		case a.Kind == frameFailed:
			failed[p] = a.Err
			if first == nil {
				first = &HostError{Host: p.addr, Err: a.Err}
			}
		default:
			return a.frame, nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sendRequest sends a request to the best host that is not in failed (see [client.selectHost]).
// It waits up to Patience for a host to connect. It returns the host, the channel that receives
// one answer, and the request's id; the caller must call awaitAnswer. A failure of sending is
// not an error but such an answer. The error is the cause of ctx, or wraps [ErrNoHost].
func (c *client) sendRequest(ctx context.Context, q frame, failed map[*peer]error) (*peer, chan answer, uint64, error) {
	patience := time.NewTimer(c.opts.Patience)
	defer patience.Stop()
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, 0, err
		}
		c.mu.Lock()
		best, changed := c.selectHost(q, failed), c.changed
		if best != nil {
			c.id++
			q.ID = c.id
			ch, conn := make(chan answer, 1), best.conn
			best.pending[q.ID] = ch
			c.mu.Unlock()
			if c.send(conn, q) != nil {
				conn.Close() // receive then fails and calls handleLost
			}
			return best, ch, q.ID, nil
		}
		out := len(failed) == len(c.peers)
		c.mu.Unlock()
		if out {
			return nil, nil, 0, ErrNoHost
		}
		select {
		case <-changed:
		case <-patience.C:
			return nil, nil, 0, c.noHostError()
		case <-ctx.Done():
		}
	}
}

// send sends a request. Requests are small, so this blocks only if the host is stopped. It takes
// at most Patience.
func (c *client) send(conn *ipc.Conn[frame], q frame) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Patience)
	defer cancel()
	return conn.Send(ctx, q)
}

// awaitAnswer waits for the answer to a request; a lost connection is an answer, too. If ctx
// ends first, it cancels the request at the host and returns the cause of ctx.
func (c *client) awaitAnswer(ctx context.Context, p *peer, ch chan answer, id uint64) (answer, error) {
	select {
	case a := <-ch:
		return a, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	_, waits := p.pending[id]
	delete(p.pending, id)
	conn := p.conn
	c.mu.Unlock()
	if !waits { // answered, or about to be
		if a := <-ch; a.err == nil && conn != nil {
			c.discardAnswer(conn, a.frame)
		}
	} else if conn != nil {
		c.send(conn, frame{Kind: frameCancel, ID: id})
	}
	return answer{}, context.Cause(ctx)
}

// discardAnswer closes the batch of an answer without a receiver, and returns a dealt batch to
// the dealer.
func (c *client) discardAnswer(conn *ipc.Conn[frame], f frame) {
	f.batch().Close()
	if f.Kind == frameDealt && f.Number >= 0 {
		c.returnBatch(conn, f.Epoch, f.Number)
	}
}

// status returns the status of each host.
func (c *client) status() []HostStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]HostStatus, len(c.peers))
	for i, p := range c.peers {
		all[i] = p.status
		all[i].Addr, all[i].Asked, all[i].Err = p.addr, len(p.pending), p.err
	}
	return slices.Clip(all)
}
