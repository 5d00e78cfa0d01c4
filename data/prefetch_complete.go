package data

import (
	"errors"
	"time"
)

// finished records the result of a request. A non-nil err means that no worker has completed it.
// finished must be called exactly once for each submitted fetch. It reports whether the batch is
// ready now.
func (p *prefetcher) finished(f *fetch, r fetchResult, err error) bool {
	p.l.meter.did(f.n, r, err)
	p.mu.Lock()
	defer p.unlock()
	b := f.b
	if p.left {
		closeAll(r.Batch)
	} else {
		p.note(f, r, err)
	}
	b.requests--
	switch {
	case b.requests > 0 && f.kind == fetchSample:
		p.advance() // the layout is known, so further batches can begin
	case b.requests > 0:
	case p.left:
		p.l.forget(b)
	case b.phase == mismatched && b.err == nil:
		p.restart(b)
	default:
		p.complete(b)
		p.advance()
	}
	return b.phase == ready
}

// note records the result of a request in its batch. The caller must hold p.mu.
func (p *prefetcher) note(f *fetch, r fetchResult, err error) {
	if err != nil {
		p.lost(f, err)
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
			f.b.to(mismatched)
		}
		f.b.bad = append(f.b.bad, p.sampleError(f.b, f.from+bad.At, r.Worker, bad.Err))
	}
	switch {
	case f.b.progress != nil:
		p.readPortion(f.b, r)
	case f.kind == fetchBatch:
		p.made(f.b, r)
	case f.kind == fetchSample:
		p.probed(f, r)
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
	p.made(b, r)
}

// made records the batch made by a worker. The caller must hold p.mu.
func (p *prefetcher) made(b *batchState, r fetchResult) {
	b.batch, b.spec = r.Batch, r.Spec
	if n := b.batch.nbytes(); n > 0 {
		p.usual = n
		p.weigh(b, n)
	}
}

// probed allocates a batch in the layout of its first good sample and requests the remaining rows.
// If the sample failed and Skip is set, it probes the next one. The caller must hold p.mu.
func (p *prefetcher) probed(f *fetch, r fetchResult) {
	b := f.b
	defer closeAll(r.Batch)
	if r.Batch == nil { // the sample failed
		if p.l.opts.Skip != nil && f.from+1 < len(b.indices) {
			p.send(&fetch{b: b, from: f.from + 1, n: 1, kind: fetchSample})
		}
		return
	}
	if r.Spec != "" && !fixed(r.Like) {
		p.loose, b.bad = true, nil
		p.make(b, len(b.indices))
		return
	}
	p.layout, p.spec, p.like = layoutOf(r.Batch, 1), r.Spec, r.Like
	if b.err = p.allot(b); b.err != nil {
		return
	}
	b.to(filling)
	row := b.buffer.all().rows(f.from, 1)
	for k, t := range r.Batch {
		row[k].CopyFrom(t)
	}
	closeAll(row)
	if f.from+1 < len(b.indices) {
		p.fill(b, f.from+1)
	}
}

// restart begins a batch again, after one of its samples did not fit the layout of the previous
// batch. The caller must hold p.mu.
func (p *prefetcher) restart(b *batchState) {
	p.weigh(b, 0)
	p.l.recycle(b.buffer)
	b.buffer, b.bad = nil, nil
	p.begin(b)
}

// complete marks a batch as ready and wakes the consumer. The caller must hold p.mu.
func (p *prefetcher) complete(b *batchState) {
	b.to(ready)
	b.done = p.timeline.clock()
	if b.buffer != nil {
		b.batch = b.buffer.deliver()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
