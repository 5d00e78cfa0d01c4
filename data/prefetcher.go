package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/pool"
)

// A prefetcher is one iteration over a Loader. It holds the batches that are ready or being made
// ahead of the consumer. There is no scheduler goroutine that would have to be woken: the goroutine
// that completes a request advances the batch. See Note [The way of a batch].
type prefetcher struct {
	l        *Loader
	ctx      context.Context
	deadline sys.Deadline // deadline of ctx
	epoch    int
	plan     plan
	mark     *mark
	executor executor
	timeline *timeline     // nil if the program publishes none
	wake     chan struct{} // holds one token: some batch has become ready

	waiting atomic.Bool // the consumer blocks in takeBatch; cleared by the worker that completes a batch

	mu      sync.Mutex
	batches []*batchState // planned but not delivered, in order
	bytes   int           // sum of the bytes of batches
	usual   int           // bytes of the latest batch of known size
	layout  layout        // of the latest probed batch
	spec    string        // structure of the latest probed batch; empty for plain batches
	like    string        // structure of its samples
	loose   bool          // samples vary in layout, so workers make whole batches
	out     []*fetch      // fetches to submit once mu is released
	more    bool          // unlock must call advanceBatch again
	over    bool          // the plan has no more batches
	left    bool          // the consumer has ended the loop
	cost    time.Duration
	prints  *prints
}

// takeBatch waits for the next batch and removes it. The caller owns the batch and must call
// skipFailed, because it may have failed samples or an error. It returns nil, nil at the end of
// the epoch, [ErrTimeout] if the batch takes longer than Options.Timeout, and otherwise the
// error of [Loader.endError]. Only the consumer's goroutine may call it, without p.mu.
func (p *prefetcher) takeBatch() (*batchState, error) {
	var alarm <-chan time.Time
	if d := p.l.opts.Timeout; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		alarm = t.C
	}
	for {
		if err := p.l.endError(p.ctx); err != nil {
			return nil, err
		}
		p.mu.Lock()
		b := p.popDeliverable()
		if b == nil || p.l.opts.Workers > 0 {
			p.advanceBatch() // also fills the slot that b has freed
		}
		idle := b == nil && len(p.batches) == 0
		p.unlock()
		if b != nil || idle {
			return b, nil
		}
		if p.executor.runOne() {
			continue
		}
		p.waiting.Store(true)
		select {
		case <-p.wake:
		case <-p.ctx.Done():
		case <-alarm:
			return nil, p.timeoutError()
		}
	}
}

// popDeliverable removes and returns the next batch that can be delivered, or nil. The caller must
// hold p.mu.
func (p *prefetcher) popDeliverable() *batchState {
	for i := 0; i < len(p.batches); {
		b := p.batches[i]
		switch {
		case b.phase != ready && !p.l.opts.AsReady:
			return nil
		case b.phase != ready:
			i++
		case b.isEmpty():
			p.batches = slices.Delete(p.batches, i, i+1)
			p.bytes -= b.bytes
			p.advanceBatch()
		default:
			p.batches = slices.Delete(p.batches, i, i+1)
			p.bytes -= b.bytes
			return b
		}
	}
	return nil
}

// timeoutError returns the error for a batch that was not ready in time. It wraps [ErrTimeout].
// At least one batch must be planned, and the caller must not hold p.mu.
func (p *prefetcher) timeoutError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batches[0]
	return fmt.Errorf("%w: batch %d not ready after %v with %d requests in flight",
		ErrTimeout, b.number, p.l.opts.Timeout, b.requests)
}

// advanceBatch begins the next batch if the limits allow it, and sets p.more to make unlock
// continue with another one. The caller must hold p.mu. It must release p.mu with unlock, which
// submits the fetches.
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

// fillsRows reports whether workers write samples to rows of a shared buffer, rather than make
// whole batches. The caller must hold p.mu.
func (p *prefetcher) fillsRows() bool {
	return !p.loose && p.l.opts.Collate == nil && p.l.opts.BatchSize != Single && !p.l.isStream()
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
		return // begun again by advanceBatch, when the previous batch is ready
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
// returns false if shared memory is full but earlier batches will free some; the batch is then
// still planned. Any other error becomes the error of the batch. The caller must hold p.mu.
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

// allocateBuffer allocates the buffer of a batch in the latest layout. Errors are as with
// [Loader.newBuffer]. The caller must hold p.mu.
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

// setWeight sets the number of bytes that a batch counts for against Options.PrefetchBytes. The
// caller must hold p.mu.
func (p *prefetcher) setWeight(b *batchState, n int) {
	p.bytes += n - b.bytes
	b.bytes = n
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
// sample. It is at least 1. The caller must hold p.mu.
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

// unlock releases p.mu and submits the pending fetches. The requests for one batch are submitted
// before memory for the next one is allocated. The caller must hold p.mu.
func (p *prefetcher) unlock() {
	for {
		fetches, more := p.out, p.more
		p.out, p.more = nil, false
		p.mu.Unlock()
		for _, f := range fetches {
			p.executor.submit(f)
		}
		if !more {
			return
		}
		p.mu.Lock()
		p.advanceBatch()
	}
}

// completeFetch records the result of a request. A non-nil err means that no worker has
// completed it. completeFetch must be called exactly once for each submitted fetch. It reports
// whether the batch is ready now. Any goroutine may call it, without p.mu.
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

// readPortion records the progress in a part of a [Stream] and the batch that was read. It closes
// the batch if it is incomplete and Options.DropLast is set. The caller must hold p.mu.
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

// compare sets the error of a batch, which wraps [ErrPart], if another part of the Stream began
// with the same samples. print is the fingerprint of the batch's first samples, or 0 for none;
// only the first batch of a part is compared. The caller must hold p.mu.
func (p *prefetcher) compare(b *batchState, print uint64) {
	if print == 0 || b.from > 0 {
		return
	}
	if other, ok := p.prints.recordPrint(print, b.part.Index); ok && other != b.part.Index {
		b.err = fmt.Errorf("%w: parts %d and %d of %d start with the same samples",
			ErrPart, other, b.part.Index, b.part.Count)
	}
}

// recordMade records the batch made by a worker, and its size in bytes. The caller must hold
// p.mu.
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

// retryLost handles a request that was not completed. If its worker died, it requests the samples
// again, one by one, so that the sample that kills workers is identified. A sample that has killed
// maxWorkerDeaths workers fails, or its batch if that was a single request. Any other error fails
// the batch. The caller must hold p.mu.
func (p *prefetcher) retryLost(f *fetch, err error) {
	if p.l.elsewhere != nil || !isDeath(err) {
		f.b.err = err
		return
	}
	if f.deads++; f.n > 1 && f.kind == fetchRows {
		for i := range f.n {
			p.send(&fetch{b: f.b, from: f.from + i, n: 1, kind: fetchRows, deads: f.deads})
		}
		return
	}
	if f.deads < p.l.opts.maxWorkerDeaths() {
		p.send(f)
		return
	}
	if f.n > 1 || f.b.progress != nil {
		f.b.err = fmt.Errorf("data: %d workers died while loading one batch: %w", f.deads, err)
		return
	}
	var dead *shoal.ProcessError
	errors.As(err, &dead)
	f.b.bad = append(f.b.bad, p.sampleError(f.b, f.from, dead.Rank, err))
	if f.kind == fetchSample {
		p.recordProbe(f, fetchResult{}) // probe the next sample
	}
}

// isDeath reports whether err is the death of a worker that will be replaced.
func isDeath(err error) bool {
	var dead *shoal.ProcessError
	return errors.As(err, &dead) && !errors.Is(err, pool.ErrBroken)
}

// maxDeaths is the default maximum number of workers killed by one sample. See
// [Options.maxWorkerDeaths].
const maxDeaths = 3

// maxWorkerDeaths returns the number of workers that may die while loading one sample before it
// fails.
func (o Options) maxWorkerDeaths() int { return max(maxDeaths, 1+o.Retries) }

func (p *prefetcher) sampleError(b *batchState, at, worker int, err error) SampleError {
	e := SampleError{Index: b.from + at, Epoch: p.epoch, Worker: worker, Part: b.part, At: at, Err: err}
	if b.progress == nil {
		e.Index = b.indices[at]
	}
	if p.l.opts.Workers == 0 {
		e.Worker = -1
	}
	return e
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

// readyCount returns the number of batches that can be delivered.
func (p *prefetcher) readyCount() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.batches {
		if b.phase == ready {
			n++
		}
	}
	return n
}

// endConsumer ends the consumer's part of the iteration and recycles the batches that were not
// delivered. Requests in flight complete, and their results are discarded. The caller must not
// hold p.mu.
func (p *prefetcher) endConsumer() {
	p.mu.Lock()
	defer p.unlock()
	p.left = true
	for _, b := range p.batches {
		if b.requests == 0 {
			p.l.recycleBatch(b)
		}
	}
	p.batches = nil
}

// prints maps the fingerprint of the first samples to the part of a Stream that began with them.
type prints struct {
	mu    sync.Mutex
	parts map[uint64]int
}

// recordPrint records the fingerprint of a part. It returns the part that was recorded with the
// same fingerprint before, if any.
func (p *prints) recordPrint(print uint64, part int) (other int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parts == nil {
		p.parts = make(map[uint64]int)
	}
	other, ok = p.parts[print]
	p.parts[print] = part
	return other, ok
}
