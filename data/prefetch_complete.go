package data

import (
	"errors"
	"time"

	"github.com/shoal-mp/shoal/pool"
)

// completeFetch records the result of a request. A non-nil err means that no worker has completed
// it. completeFetch must be called exactly once for each submitted fetch. It reports whether the
// batch is ready now.
func (p *prefetcher) completeFetch(f *fetch, r fetchResult, err error) bool {
	p.l.meter.countRequest(f.n, r, err)
	p.mu.Lock()
	defer p.unlock()
	b := f.b
	if b.buffer != nil && errors.Is(err, pool.ErrCanceled) {
		b.buffer.inUse = true
	}
	if p.left {
		closeAll(r.Batch)
	} else {
		p.recordResult(f, r, err)
	}
	b.requests--
	switch {
	case b.requests > 0 && f.kind == fetchSample:
		p.advanceBatch() // the layout is known, so further batches can begin
	case b.requests > 0:
	case p.left:
		p.l.recycleBatch(b)
	case b.phase == mismatched && b.err == nil:
		p.restartBatch(b)
	default:
		p.markReady(b)
		p.advanceBatch()
	}
	return b.phase == ready
}

// recordResult records the result of a request in its batch. The caller must hold p.mu.
func (p *prefetcher) recordResult(f *fetch, r fetchResult, err error) {
	if err != nil {
		p.retryLost(f, err)
		return
	}
	if b := f.b; r.Began != 0 && (b.began == 0 || r.Began < b.began) {
		b.began = r.Began
	}
	each := r.Took / time.Duration(max(1, f.n))
	if p.cost += (each - p.cost) / 4; p.cost == 0 {
		p.cost = max(1, each)
	}
	for _, bad := range r.Bad {
		if f.b.phase == assuming && errors.Is(bad.Err, ErrShape) {
			f.b.setPhase(mismatched)
		}
		f.b.bad = append(f.b.bad, p.sampleError(f.b, f.from+bad.At, r.Worker, bad.Err))
	}
	switch {
	case f.b.progress != nil:
		p.readPortion(f.b, r)
	case f.kind == fetchBatch:
		p.recordMade(f.b, r)
	case f.kind == fetchSample:
		p.recordProbe(f, r)
	}
}

// readPortion records the progress in a part of a Stream. The caller must hold p.mu.
func (p *prefetcher) readPortion(b *batchState, r fetchResult) {
	b.read, b.kept, b.end = r.Read, r.Kept, r.End
	b.progress.read += r.Read
	b.progress.end = r.End
	p.compare(b, r.Print)
	if p.l.opts.DropLast && r.Read < b.size {
		closeAll(r.Batch)
		return
	}
	p.recordMade(b, r)
}

// recordMade records the batch made by a worker. The caller must hold p.mu.
func (p *prefetcher) recordMade(b *batchState, r fetchResult) {
	b.batch, b.spec = r.Batch, r.Spec
	if n := b.batch.nbytes(); n > 0 {
		p.usual = n
		p.setWeight(b, n)
	}
}

// recordProbe allocates a batch in the layout of its first good sample and requests the remaining
// rows. If the sample failed and Skip is set, it probes the next one. The caller must hold p.mu.
func (p *prefetcher) recordProbe(f *fetch, r fetchResult) {
	b := f.b
	defer closeAll(r.Batch)
	if r.Batch == nil { // the sample failed
		if p.l.opts.Skip != nil && f.from+1 < len(b.indices) {
			p.send(&fetch{b: b, from: f.from + 1, n: 1, kind: fetchSample})
		}
		return
	}
	if r.Spec != "" && !isFixed(r.Like) {
		p.loose, b.bad = true, nil
		p.requestBatch(b, len(b.indices))
		return
	}
	p.layout, p.spec, p.like = layoutOf(r.Batch, 1), r.Spec, r.Like
	if b.err = p.allocateBuffer(b); b.err != nil {
		return
	}
	b.setPhase(filling)
	row := b.buffer.allRows().viewRows(f.from, 1)
	for k, t := range r.Batch {
		row[k].CopyFrom(t)
	}
	closeAll(row)
	if f.from+1 < len(b.indices) {
		p.fill(b, f.from+1)
	}
}

// restartBatch begins a batch again, after one of its samples did not fit the layout of the
// previous batch. The caller must hold p.mu.
func (p *prefetcher) restartBatch(b *batchState) {
	p.setWeight(b, 0)
	p.l.recycleBuffer(b.buffer)
	b.buffer, b.bad = nil, nil
	p.beginBatch(b)
}

// markReady marks a batch as ready and wakes the consumer. The caller must hold p.mu.
func (p *prefetcher) markReady(b *batchState) {
	b.setPhase(ready)
	b.done = p.timeline.clockTime()
	if b.buffer != nil {
		b.batch = b.buffer.consumerBatch()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
