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

// A client has the connections of a trainer to its data hosts. What a host does not answer, it asks
// of another one.
type client struct {
	opts  Options
	peers []*peer
	ctx   context.Context
	end   context.CancelCauseFunc
	done  sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}     // closed when a host comes, goes, or has answered
	served  *hello            // by the hosts
	by      string            // by the first of them that was reached
	ledger  string            // of the dealer
	name    string            // of this trainer, for the dealer
	working map[batchKey]bool // batches that were dealt to this trainer, and are not acknowledged
	open    map[part]*peer    // where the parts of a Stream are read
	id      uint64
}

// A peer is a data host. Its fields are guarded by the client's mu.
type peer struct {
	addr    string
	conn    *ipc.Conn[frame] // nil if it is not connected
	pending map[uint64]chan answer
	err     error // why it is not connected
	tried   bool  // to connect
	open    int   // parts of a Stream that are read there
	status  HostStatus
}

// An answer is what came of a request.
type answer struct {
	frame
	err error // the connection was lost
}

// dial connects to the hosts.
func dial(ctx context.Context, opts Options, addrs []string) (*client, error) {
	opts, err := opts.complete(len(addrs))
	if err != nil {
		return nil, err
	}
	c := &client{opts: opts, changed: make(chan struct{}), name: rand.Text(), working: make(map[batchKey]bool),
		open: make(map[part]*peer)}
	c.ctx, c.end = context.WithCancelCause(context.Background())
	for _, addr := range addrs {
		p := &peer{addr: addr, pending: make(map[uint64]chan answer), err: errNotYet}
		c.peers = append(c.peers, p)
		c.done.Go(func() { c.keep(p) })
	}
	if err := c.begun(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

var errNotYet = errors.New("not connected yet")

// begun waits until each host was tried. One is enough to begin, but a host that is wrong is an
// error.
func (c *client) begun(ctx context.Context) error {
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
			} else if p.tried && fatal(p.err) {
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
			return c.noHost()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// noHost is the error of having no host, with what became of each.
func (c *client) noHost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []error
	var names []string
	for _, p := range c.peers {
		all = append(all, p.err)
		names = append(names, p.addr)
	}
	return &HostError{Host: strings.Join(names, ", "), Err: fmt.Errorf("%w: %w", ErrNoHost, errors.Join(all...)),
		Advice: "start one of them again, or check the addresses and the firewall"}
}

// change tells all that wait for hosts. mu is held.
func (c *client) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// How long to wait before another try to connect.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = 2 * time.Second
)

// keep connects to a host, again whenever the connection is lost, until the client ends.
func (c *client) keep(p *peer) {
	wait := firstWait
	for c.ctx.Err() == nil {
		conn, err := c.meet(p)
		if err == nil {
			wait = firstWait
			err = c.attend(p, conn)
		}
		c.lose(p, conn, err)
		select {
		case <-time.After(wait):
			wait = min(2*wait, mostWait)
		case <-c.ctx.Done():
		}
	}
}

// attend takes what a host sends until it is lost.
func (c *client) attend(p *peer, conn *ipc.Conn[frame]) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if c.opts.Dynamic && p == c.peers[0] {
		c.done.Go(func() {
			c.claim(conn)
			c.beat(ctx, conn)
		})
	}
	return c.receive(p, conn)
}

// meet connects to a host, and compares what it serves.
func (c *client) meet(p *peer) (*ipc.Conn[frame], error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Patience)
	defer cancel()
	conn, err := ipc.Dial[frame](ctx, "tcp://"+p.addr, c.opts.Key,
		tcp.Options{TLS: c.opts.TLS, Fingerprint: c.opts.Fingerprint, Unencrypted: c.opts.Unencrypted})
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
		err = fmt.Errorf("%w: it does not say what it serves", ipc.ErrPeer)
	case h.Version != version:
		err = fmt.Errorf("%w: it has version %d of the protocol, and this program %d", ipc.ErrPeer, h.Version, version)
	}
	if err == nil {
		err = c.agree(p, h, conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// agree compares what a host serves with the others, and enters its connection.
func (c *client) agree(p *peer, h hello, conn *ipc.Conn[frame]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served == nil {
		c.served, c.by = &h, p.addr
	}
	if what := h.differs(*c.served); what != "" {
		return fmt.Errorf("%w: %s at %s", ErrMismatch, what, c.by)
	}
	if c.opts.Dynamic && p == c.peers[0] {
		if c.ledger != "" && c.ledger != h.Ledger {
			return fmt.Errorf("%w: the data host that deals the batches has begun another one", ErrLedger)
		}
		c.ledger = h.Ledger
	}
	if p.status.Losses > 0 {
		slog.Info("data service: a data host is back", "host", p.addr)
	}
	p.conn, p.err, p.tried, p.status.Connected = conn, nil, true, true
	c.change()
	return nil
}

// receive gives what a host sends to those that wait for it.
func (c *client) receive(p *peer, conn *ipc.Conn[frame]) error {
	for {
		f, err := c.next(conn)
		if err != nil {
			return err
		}
		if f.Kind == frameBeat {
			continue
		}
		c.mu.Lock()
		ch := p.pending[f.ID]
		delete(p.pending, f.ID)
		if f.Kind == frameBatch && f.some() {
			p.status.Batches++
			for _, t := range f.Tensors {
				p.status.Bytes += t.Nbytes()
			}
		}
		c.mu.Unlock()
		if ch == nil { // nobody waits any more
			c.refuse(conn, f)
			continue
		}
		ch <- answer{frame: f}
	}
}

// next receives a frame, which has to begin and to end within the time of Patience.
func (c *client) next(conn *ipc.Conn[frame]) (f frame, err error) {
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

// lose is the end of a connection, or of a try to make one. What was asked of the host is asked of
// others.
func (c *client) lose(p *peer, conn *ipc.Conn[frame], err error) {
	if conn != nil {
		conn.Close()
	}
	lost := hostError(p.addr, err)
	c.mu.Lock()
	if c.ctx.Err() == nil && p.conn != nil {
		p.status.Losses++
		slog.Warn("data service: a data host is lost; its batches come from the others", "host", p.addr, "error", err)
	} else if c.ctx.Err() == nil && p.tried && fatal(err) && !fatal(p.err) {
		slog.Warn("data service: a data host cannot be used", "host", p.addr, "error", lost)
	}
	p.conn, p.err, p.tried, p.status.Connected = nil, lost, true, false
	pending := p.pending
	p.pending = make(map[uint64]chan answer)
	c.change()
	c.mu.Unlock()
	for _, ch := range pending {
		ch <- answer{err: lost}
	}
}

// close ends all connections.
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

// fetch asks for a batch, of one host after the other until one has sent it. If a host cannot make
// it, such as for a file that it has not, the others are asked as well. The error is then that of
// the first.
func (c *client) fetch(ctx context.Context, q frame) (frame, error) {
	failed := make(map[*peer]error)
	var first error
	var full time.Time // since when shared memory has no room
	for {
		p, ch, id, err := c.ask(ctx, q, failed)
		if err != nil && first != nil && !errors.Is(err, context.Cause(ctx)) {
			return frame{}, first
		}
		if err != nil {
			return frame{}, err
		}
		a, err := c.await(ctx, p, ch, id)
		switch {
		case err != nil:
			return frame{}, err
		case errors.Is(a.err, shm.ErrNoSpace): // here
			if full.IsZero() {
				full = time.Now()
			}
			if time.Since(full) > c.opts.Patience {
				return frame{}, fmt.Errorf("receive a batch: %w", a.err)
			}
			if err := pause(ctx, firstWait); err != nil {
				return frame{}, err
			}
		case a.err != nil: // the host is lost
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

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask sends a request to a host, but to none of those that have failed at it. It waits for a host
// if there is none.
func (c *client) ask(ctx context.Context, q frame, failed map[*peer]error) (*peer, chan answer, uint64, error) {
	patience := time.NewTimer(c.opts.Patience)
	defer patience.Stop()
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, 0, err
		}
		c.mu.Lock()
		best, changed := c.host(q, failed), c.changed
		if best != nil {
			c.id++
			q.ID = c.id
			ch, conn := make(chan answer, 1), best.conn
			best.pending[q.ID] = ch
			c.mu.Unlock()
			if c.send(conn, q) != nil {
				conn.Close() // the receiver finds out, and tells all that wait
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
			return nil, nil, 0, c.noHost()
		case <-ctx.Done():
		}
	}
}

// send sends a request. It is small, so only a host that is stopped makes it wait.
func (c *client) send(conn *ipc.Conn[frame], q frame) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.Patience)
	defer cancel()
	return conn.Send(ctx, q)
}

// await waits for an answer. If ctx ends before, the host is told.
func (c *client) await(ctx context.Context, p *peer, ch chan answer, id uint64) (answer, error) {
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
	if !waits { // the answer is there, or is being written
		if a := <-ch; a.err == nil && conn != nil {
			c.refuse(conn, a.frame)
		}
	} else if conn != nil {
		c.send(conn, frame{Kind: frameCancel, ID: id})
	}
	return answer{}, context.Cause(ctx)
}

// refuse is the end of an answer that nobody wants.
func (c *client) refuse(conn *ipc.Conn[frame], f frame) {
	f.batch().Close()
	if f.Kind == frameDealt && f.Number >= 0 {
		c.giveBack(conn, f.Epoch, f.Number)
	}
}

// status returns what became of each host.
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
