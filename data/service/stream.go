package service

import (
	"context"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
	"github.com/shoal-mp/shoal/ipc"
)

// A stream represents the Stream of the data hosts. The trainer's data.Loader plans the batches as
// if it read the Stream itself, and the data hosts make them.
type stream struct{ client *client }

// mostParts is the maximum number of parts of a Stream, and thereby of trainers that share them.
const mostParts = 1 << 18

// streamLoader returns a loader that plans the batches of a Stream. The caller must close it.
// The error wraps [ErrOptions] for options that need numbered batches.
func (c *client) streamLoader() (*data.Loader, error) {
	switch o := c.opts; {
	case o.Dynamic:
		return nil, fmt.Errorf("%w: Dynamic needs batch indices, which a Stream does not have: "+
			"set World and Rank in the trainers", ErrOptions)
	case o.Coordinated:
		return nil, fmt.Errorf("%w: Coordinated needs the number of steps, which a Stream does not have: leave it out",
			ErrOptions)
	case o.World > mostParts:
		return nil, fmt.Errorf("%w: World %d: want at most %d trainers for a Stream", ErrOptions, o.World, mostParts)
	}
	return maker.NewLoader(stream{c}, data.Options{BatchSize: c.served.BatchSize, Seed: c.served.Seed,
		DropLast: c.served.DropLast, Parts: c.served.Parts, Rank: c.opts.Rank, World: c.opts.World,
		Workers: len(c.peers), Prefetch: c.opts.Prefetch, PrefetchBytes: c.opts.PrefetchBytes}).(*data.Loader), nil
}

// Reader starts a loop. The caller must close the Reader.
func (s stream) Reader() maker.Reader {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.client.id++
	return &loop{s.client, s.client.id}
}

// A loop is one iteration over an epoch, identified by number at the data hosts.
type loop struct {
	client *client
	number uint64
}

// Read requests a batch from a data host. The caller must close it. The error wraps
// [ipc.ErrPeer] if the host's answer does not fit the portion; other errors are as with
// [client.fetch].
func (l *loop) Read(ctx context.Context, p maker.Portion) (maker.Batch, error) {
	f, err := l.client.fetch(ctx, frame{Kind: frameRead, Loop: l.number, Portion: p})
	if err != nil {
		return maker.Batch{}, err
	}
	if f.Read < 0 || f.Read > p.N || f.Read < p.N && !f.End {
		f.batch().Close()
		return maker.Batch{}, fmt.Errorf("%w: data host read %d of %d samples of part %d", ipc.ErrPeer, f.Read, p.N,
			p.Part)
	}
	return f.batch(), nil
}

// Close tells the data hosts that the loop has ended. It ignores lost connections and returns
// nil.
func (l *loop) Close() error {
	for _, conn := range l.client.forgetLoop(l.number) {
		l.client.send(conn, frame{Kind: frameLeave, Loop: l.number})
	}
	return nil
}

// A part identifies a part of a Stream within a loop.
type part struct {
	loop  uint64
	index int
}

// selectHost selects a connected host for a request, except those in failed. It returns nil if
// there is none. A part of a Stream stays at the host that has it open. Otherwise the host with
// the fewest open parts is selected, and among equal ones the host with the fewest pending
// requests. The caller must hold c.mu.
func (c *client) selectHost(q frame, failed map[*peer]error) (best *peer) {
	able := func(p *peer) bool { return p.conn != nil && failed[p] == nil }
	of := part{q.Loop, q.Portion.Part}
	home := c.open[of]
	if home != nil && able(home) {
		return home
	}
	for _, p := range c.peers {
		if able(p) && (best == nil || p.open < best.open || p.open == best.open && len(p.pending) < len(best.pending)) {
			best = p
		}
	}
	if q.Kind == frameRead && best != nil {
		if home != nil {
			home.open--
		}
		best.open++
		c.open[of] = best
	}
	return best
}

// forgetLoop forgets the parts of a loop, and returns the connections of all connected hosts,
// which stay open.
func (c *client) forgetLoop(loop uint64) (all []*ipc.Conn[frame]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of, home := range c.open {
		if of.loop == loop {
			home.open--
			delete(c.open, of)
		}
	}
	for _, p := range c.peers {
		if p.conn != nil {
			all = append(all, p.conn)
		}
	}
	return all
}

// eachRead yields the batches of an epoch of a Stream, which yield owns. An error is passed to
// the last call, without a batch.
func (l *Loader) eachRead(ctx context.Context, epoch int, yield func(b maker.Batch, err error) bool) {
	defer l.meter.startLoop()()
	begin := time.Now()
	for b, err := range maker.Each(ctx, l.stream, epoch) {
		l.meter.addStall(time.Since(begin))
		if err != nil {
			yield(maker.Batch{}, err)
			return
		}
		l.meter.countDelivered(b)
		if !yield(b, nil) {
			return
		}
		begin = time.Now()
	}
	l.meter.addStall(time.Since(begin))
}
