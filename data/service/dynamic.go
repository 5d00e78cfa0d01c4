package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/ipc"
)

// askDealer sends a request to the dealer and waits for the answer. It repeats the request after
// reconnecting if the connection is lost. It returns the answer and the connection that
// delivered it. The error is a [*HostError], or the cause of ctx.
func (c *client) askDealer(ctx context.Context, q frame) (frame, *ipc.Conn[frame], error) {
	p := c.peers[0]
	for {
		conn, err := c.awaitDealer(ctx)
		if err != nil {
			return frame{}, nil, err
		}
		c.mu.Lock()
		if p.conn != conn {
			c.mu.Unlock()
			continue
		}
		c.id++
		q.ID = c.id
		ch := make(chan answer, 1)
		p.pending[q.ID] = ch
		c.mu.Unlock()
		if c.send(conn, q) != nil {
			conn.Close() // receive then fails and calls handleLost
		}
		a, err := c.awaitAnswer(ctx, p, ch, q.ID)
		switch {
		case err != nil:
			return frame{}, nil, err
		case a.err != nil: // connection lost; repeat
		case a.Kind == frameFailed:
			return frame{}, nil, hostError(p.addr, a.Err)
		default:
			return a.frame, conn, nil
		}
	}
}

// awaitDealer waits up to Patience for a connection to the dealer and returns it. The error
// wraps [ErrNoHost] if there is none in time. A fatal error (see [isFatal]) and the cause of ctx
// are returned at once.
func (c *client) awaitDealer(ctx context.Context) (*ipc.Conn[frame], error) {
	patience := time.NewTimer(c.opts.Patience)
	defer patience.Stop()
	p := c.peers[0]
	for {
		c.mu.Lock()
		conn, err, changed := p.conn, p.err, c.changed
		c.mu.Unlock()
		if conn != nil {
			return conn, nil
		}
		if isFatal(err) {
			return nil, err
		}
		select {
		case <-changed:
		case <-patience.C:
			return nil, &HostError{Host: p.addr, Err: fmt.Errorf("%w: %w", ErrNoHost, err),
				Advice: "it assigns the batches, as the first of the addresses: restart it there with its " +
					"HostOptions.Ledger"}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// holdsDealt reports whether batches dealt over conn still belong to this trainer. The dealer
// reassigns them when the connection is lost.
func (c *client) holdsDealt(conn *ipc.Conn[frame]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peers[0].conn == conn
}

// returnBatch returns a batch to the dealer. It ignores errors of the connection, because the
// dealer takes the batch back when the connection ends.
func (c *client) returnBatch(conn *ipc.Conn[frame], epoch, number int) {
	c.send(conn, frame{Kind: frameGive, Epoch: epoch, Number: number})
}

// reclaimBatches reclaims the batches this trainer works on, from a dealer that may have been
// restarted. It ignores errors of the connection, because the next connection reclaims them again.
func (c *client) reclaimBatches(conn *ipc.Conn[frame]) {
	c.mu.Lock()
	working := slices.Collect(maps.Keys(c.working))
	c.mu.Unlock()
	for _, b := range working {
		c.send(conn, frame{Kind: frameHold, Epoch: b.epoch, Number: b.number})
	}
}

// setWorking records whether this trainer works on a batch: it does if on is true.
func (c *client) setWorking(epoch, number int, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.working, batchKey{epoch, number}); on {
		c.working[batchKey{epoch, number}] = true
	}
}

// sendHeartbeats sends heartbeats to the dealer until ctx ends or sending fails, so that processing
// a batch may take any time.
func (c *client) sendHeartbeats(ctx context.Context, conn *ipc.Conn[frame]) {
	tick := time.NewTicker(beatTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if c.send(conn, frame{Kind: frameBeat}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// A dealt is a batch that the dealer assigned to this trainer, or the reason why there is none.
// The receiver must close the batch, and acknowledge it or return it to the dealer over conn.
type dealt struct {
	maker.Batch
	number int
	conn   *ipc.Conn[frame]
	over   bool // no batch, because the epoch is finished
	err    error
}

// obtainBatch requests a batch number from the dealer and fetches the batch from a data host. If
// the dealer's connection is lost meanwhile, it begins again.
func (c *client) obtainBatch(ctx context.Context, epoch int) dealt {
	for {
		f, conn, err := c.askDealer(ctx, frame{Kind: frameNext, Epoch: epoch})
		if err != nil || f.Number < 0 {
			return dealt{over: err == nil, err: err}
		}
		b, err := c.fetch(ctx, frame{Kind: frameAsk, Epoch: epoch, Number: f.Number})
		if err != nil {
			c.returnBatch(conn, epoch, f.Number)
			return dealt{err: err}
		}
		if c.holdsDealt(conn) {
			return dealt{Batch: b.batch(), number: f.Number, conn: conn}
		}
		b.batch().Close()
	}
}

// acknowledgeBatch tells the dealer that a batch was used. It returns nil once the ledger
// contains it, and an error that wraps [ErrExpired] if the batch was assigned to another
// trainer.
func (c *client) acknowledgeBatch(ctx context.Context, epoch, number int) error {
	f, _, err := c.askDealer(ctx, frame{Kind: frameAck, Epoch: epoch, Number: number, Trainer: c.name})
	if err == nil && f.Samples == 0 {
		err = hostError(c.peers[0].addr, fmt.Errorf("batch %d of epoch %d: %w", number, epoch, ErrExpired))
	}
	return err
}

// eachDealt yields the batches of an epoch that are assigned to this trainer, until every batch
// is acknowledged by some trainer. It acknowledges each batch when yield has returned true. An
// error is passed to the last call, without a batch. yield owns the batch.
func (l *Loader) eachDealt(ctx context.Context, epoch int, yield func(b maker.Batch, err error) bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(l.client.ctx, func() { cancel(data.ErrClosed) })()
	defer l.meter.startLoop()()
	// Batches are yielded in order of arrival. If loops waited for particular batches, trainers
	// could deadlock, each holding the batch that another waits for.
	asked, got := 0, make(chan dealt, l.opts.Prefetch)
	used := dealt{over: true} // batch that was yielded last, until it is acknowledged
	defer func() {
		cancel(nil)
		for range asked {
			if d := <-got; d.err == nil && !d.over {
				d.Close()
				l.client.returnBatch(d.conn, epoch, d.number)
			}
		}
		if !used.over {
			l.client.setWorking(epoch, used.number, false)
			l.client.returnBatch(used.conn, epoch, used.number)
		}
	}()
	for {
		if !used.over {
			if err := l.client.acknowledgeBatch(ctx, epoch, used.number); err != nil {
				yield(maker.Batch{}, err)
				return
			}
			l.client.setWorking(epoch, used.number, false)
			used.over = true
		}
		for ; asked < l.maxPending(); asked++ {
			go func() { got <- l.client.obtainBatch(ctx, epoch) }()
		}
		begin := time.Now()
		d := <-got
		asked--
		l.meter.addStall(time.Since(begin))
		switch {
		case d.err != nil:
			yield(maker.Batch{}, d.err)
			return
		case d.over:
			l.recordState(data.State{Seed: l.seed, Epoch: epoch + 1})
			return
		case !l.client.holdsDealt(d.conn):
			d.Close()
			continue
		}
		l.usual.Store(int64(max(nbytes(d.Batch), 1)))
		l.recordState(data.State{Seed: l.seed, Epoch: epoch})
		used = d
		l.client.setWorking(epoch, d.number, true)
		if d.Samples == 0 { // all its samples were skipped
			continue
		}
		l.meter.countDelivered(d.Batch)
		if !yield(d.Batch, nil) {
			return
		}
	}
}
