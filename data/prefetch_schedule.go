package data

import (
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
)

// advanceBatch begins the next batch if the limits allow it, and sets p.more to make unlock
// continue with another one. The caller must hold p.mu.
func (p *prefetcher) advanceBatch() {
	for _, b := range p.batches {
		if b.phase == planned && !p.beginBatch(b) {
			return
		}
	}
	if p.left || p.over || len(p.batches) >= p.l.maxAhead() || !p.hasRoom() {
		return
	}
	b, ok := p.plan.nextBatch()
	if !ok {
		p.over = true
		return
	}
	p.batches = append(p.batches, b)
	p.more = p.beginBatch(b)
}

// hasRoom reports whether the byte limit allows another batch. The caller must hold p.mu.
func (p *prefetcher) hasRoom() bool {
	switch {
	case len(p.batches) == 0:
		return true
	case p.fillsRows() && p.layout == nil:
		return false
	case p.usual == 0:
		return len(p.batches) < p.l.opts.Workers
	}
	return p.bytes+p.usual <= p.l.opts.PrefetchBytes
}

// setWeight sets the number of bytes that a batch counts for. The caller must hold p.mu.
func (p *prefetcher) setWeight(b *batchState, n int) {
	p.bytes += n - b.bytes
	b.bytes = n
}

// beginBatch requests the samples of a planned or mismatched batch. It reports whether further
// batches may begin. The caller must hold p.mu.
func (p *prefetcher) beginBatch(b *batchState) bool {
	if b.asked == 0 {
		b.asked = p.timeline.clockTime()
	}
	switch {
	case b.progress != nil:
		p.beginPortion(b)
	case len(b.indices) == 0:
		b.err = fmt.Errorf("%w: BatchSampler returned no samples for batch %d of epoch %d",
			ErrEmptyBatch, b.number, p.epoch)
		p.markReady(b)
	case !p.fillsRows():
		p.requestBatch(b, len(b.indices))
	case p.layout == nil || b.phase == mismatched:
		b.setPhase(probing)
		p.send(&fetch{b: b, n: 1, kind: fetchSample})
		return p.layout != nil
	default:
		return p.assumeLayout(b)
	}
	return true
}

// beginPortion requests a batch of a Stream, if the previous batch of its part has been read. The
// caller must hold p.mu.
func (p *prefetcher) beginPortion(b *batchState) {
	if b.before != nil && b.before.phase != ready {
		return // begun again by advance, when the previous batch is ready
	}
	b.before, b.from = nil, b.progress.read
	if b.progress.end {
		p.markReady(b)
		return
	}
	p.requestBatch(b, b.size)
}

// requestBatch asks a worker to make a whole batch of n samples. The caller must hold p.mu.
func (p *prefetcher) requestBatch(b *batchState, n int) {
	b.setPhase(making)
	p.setWeight(b, p.usual)
	p.send(&fetch{b: b, n: n, kind: fetchBatch})
}

// assumeLayout allocates a batch in the layout of the previous one and requests its rows. It
// returns false if there is no memory at present. The caller must hold p.mu.
func (p *prefetcher) assumeLayout(b *batchState) bool {
	err := p.allocateBuffer(b)
	if errors.Is(err, arena.ErrNoSpace) && p.batches[0] != b {
		return false // earlier batches will free some when they are consumed
	}
	if err != nil {
		b.err = err
		p.markReady(b)
		return true
	}
	b.setPhase(assuming)
	p.fill(b, 0)
	return true
}

// allocateBuffer allocates the buffer of a batch. The caller must hold p.mu.
func (p *prefetcher) allocateBuffer(b *batchState) error {
	f, err := p.l.newBuffer(p.layout, len(b.indices), p.executor)
	if err != nil {
		return err
	}
	b.buffer, b.spec, b.like = f, p.spec, p.like
	p.usual = f.size
	p.setWeight(b, f.size)
	return nil
}

// fill requests the rows of a batch from row from on. The caller must hold p.mu.
func (p *prefetcher) fill(b *batchState, from int) {
	n := len(b.indices) - from
	parts := (n + p.chunkSize(n) - 1) / p.chunkSize(n)
	for k := range parts {
		at := from + k*n/parts
		p.send(&fetch{b: b, from: at, n: from + (k+1)*n/parts - at, kind: fetchRows})
	}
}

// chunkSize returns the number of samples, out of n, for one request: enough to make the cost of
// submitting it small, but no more, so that other workers can take over the rows behind a slow
// sample. The caller must hold p.mu.
func (p *prefetcher) chunkSize(n int) int {
	if p.l.opts.Workers == 0 || p.cost == 0 {
		return max(1, n)
	}
	unit := goroutineUnit
	if p.l.opts.Kind != Goroutines {
		unit = processUnit
	}
	return max(1, min(int(unit/p.cost), n))
}

// Targeted duration of one request.
const (
	goroutineUnit = 50 * time.Microsecond
	processUnit   = 250 * time.Microsecond
)

func (p *prefetcher) send(f *fetch) {
	f.p = p
	f.b.requests++
	p.out = append(p.out, f)
}
