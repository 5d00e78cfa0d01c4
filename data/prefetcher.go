package data

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
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

	waiting atomic.Bool // the consumer blocks in take; cleared by the worker that completes a batch

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

// takeBatch waits for the next batch and removes it. It returns nil, nil at the end of the epoch,
// [ErrTimeout] if the batch takes longer than Options.Timeout, and otherwise the error of
// [Loader.endError].
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

// fillsRows reports whether workers write samples to rows of a shared buffer, rather than make
// whole batches.
func (p *prefetcher) fillsRows() bool {
	return !p.loose && p.l.opts.Collate == nil && p.l.opts.BatchSize != Single && !p.l.isStream()
}

// timeoutError returns the error for a batch that was not ready in time.
func (p *prefetcher) timeoutError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batches[0]
	return fmt.Errorf("%w: batch %d not ready after %v with %d requests in flight",
		ErrTimeout, b.number, p.l.opts.Timeout, b.requests)
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

// endConsumer ends the consumer's part of the iteration. Requests in flight complete, and their
// results are discarded.
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
