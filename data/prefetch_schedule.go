package data

import (
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// advance begins a batch, if there is room for it, and has unlock go on with the next. mu is held.
func (p *prefetcher) advance() {
	for _, b := range p.batches {
		if b.phase == planned && !p.begin(b) {
			return
		}
	}
	if p.left || p.over || len(p.batches) >= p.l.ahead() || !p.room() {
		return
	}
	b, ok := p.plan.next()
	if !ok {
		p.over = true
		return
	}
	p.batches = append(p.batches, b)
	p.more = p.begin(b)
}

// room reports whether another batch may be begun as far as bytes go. mu is held.
func (p *prefetcher) room() bool {
	switch {
	case len(p.batches) == 0:
		return true
	case p.fills() && p.layout == nil:
		return false
	case p.usual == 0:
		return len(p.batches) < p.l.opts.Workers
	}
	return p.bytes+p.usual <= p.l.opts.PrefetchBytes
}

// weigh notes how many bytes a batch has. mu is held.
func (p *prefetcher) weigh(b *batchState, n int) {
	p.bytes += n - b.bytes
	b.bytes = n
}

// begin asks for a batch that is planned or mismatched, and reports whether others may be begun. mu
// is held.
func (p *prefetcher) begin(b *batchState) bool {
	if b.asked == 0 {
		b.asked = p.timeline.clock()
	}
	switch {
	case b.progress != nil:
		p.beginPortion(b)
	case len(b.indices) == 0:
		b.err = fmt.Errorf("%w: the BatchSampler asks for batch %d of epoch %d without a sample",
			ErrEmptyBatch, b.number, p.epoch)
		p.complete(b)
	case !p.fills():
		p.make(b, len(b.indices))
	case p.layout == nil || b.phase == mismatched:
		b.to(probing)
		p.send(&fetch{b: b, n: 1, kind: fetchSample})
		return p.layout != nil
	default:
		return p.assume(b)
	}
	return true
}

// beginPortion asks for a batch of a Stream, once those before it were read. mu is held.
func (p *prefetcher) beginPortion(b *batchState) {
	if b.before != nil && b.before.phase != ready {
		return // its turn comes
	}
	b.before, b.from = nil, b.progress.read
	if b.progress.end {
		p.complete(b)
		return
	}
	p.make(b, b.size)
}

// make has a worker make a batch of n samples. mu is held.
func (p *prefetcher) make(b *batchState, n int) {
	b.to(making)
	p.weigh(b, p.usual)
	p.send(&fetch{b: b, n: n, kind: fetchBatch})
}

// assume has rows filled as if they were like those of the batch before. It reports false if there
// is no memory now. mu is held.
func (p *prefetcher) assume(b *batchState) bool {
	err := p.allot(b)
	if errors.Is(err, arena.ErrNoSpace) && p.batches[0] != b {
		return false // there will be some when those before it are consumed
	}
	if err != nil {
		b.err = err
		p.complete(b)
		return true
	}
	b.to(assuming)
	p.fill(b, 0)
	return true
}

// allot gives a batch its buffer. mu is held.
func (p *prefetcher) allot(b *batchState) error {
	f, err := p.l.buffer(p.layout, len(b.indices), p.executor)
	if err != nil {
		return err
	}
	b.buffer, b.spec, b.like = f, p.spec, p.like
	p.usual = f.size
	p.weigh(b, f.size)
	return nil
}

// fill has the rows of a batch filled, from one on. mu is held.
func (p *prefetcher) fill(b *batchState, from int) {
	n := len(b.indices) - from
	parts := (n + p.chunk(n) - 1) / p.chunk(n)
	for k := range parts {
		at := from + k*n/parts
		p.send(&fetch{b: b, from: at, n: from + (k+1)*n/parts - at, kind: fetchRows})
	}
}

// chunk is how many samples a worker gets at once, of n: so many that handing them out costs little
// of its time, and no more, so that others can take what is behind a slow one. mu is held.
func (p *prefetcher) chunk(n int) int {
	if p.l.opts.Workers == 0 || p.cost == 0 {
		return max(1, n)
	}
	unit := goroutineUnit
	if p.l.opts.Kind != Goroutines {
		unit = processUnit
	}
	return max(1, min(int(unit/p.cost), n))
}

// How long what a worker gets at once should take it.
const (
	goroutineUnit = 50 * time.Microsecond
	processUnit   = 250 * time.Microsecond
)

func (p *prefetcher) send(f *fetch) {
	f.p = p
	f.b.requests++
	p.out = append(p.out, f)
}
