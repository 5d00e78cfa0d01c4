package data

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A prefetcher is one iteration over a Loader: the batches that are ready or being made, ahead of
// the consumer. The goroutine in which a request ends moves its batch on, so that none has to be
// woken for it. See Note [The way of a batch].
type prefetcher struct {
	l        *Loader
	ctx      context.Context
	epoch    int
	plan     plan
	mark     *mark
	executor executor
	timeline *timeline     // nil where nobody can see it
	wake     chan struct{} // holds one token: something has become ready

	waiting atomic.Bool // the consumer is, or was until something became ready

	mu      sync.Mutex
	batches []*batchState // planned and not delivered, in order
	bytes   int           // of all of them
	usual   int           // of the last batch that told
	layout  layout        // of the last batch that told
	spec    string        // of such a batch, if it is structured
	like    string        // of its samples
	loose   bool          // samples are not of one layout: workers make the batches
	out     []*fetch      // to be submitted when mu is free
	more    bool          // advance has not come to its end
	over    bool          // nothing is planned any more
	left    bool          // the consumer has
	cost    time.Duration
	prints  *prints
}

// take waits for the next batch; nil if there are none any more.
func (p *prefetcher) take() (*batchState, error) {
	var alarm <-chan time.Time
	if d := p.l.opts.Timeout; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		alarm = t.C
	}
	for {
		if err := p.l.ended(p.ctx); err != nil {
			return nil, err
		}
		p.mu.Lock()
		b := p.deliverable()
		if b == nil || p.l.opts.Workers > 0 {
			p.advance() // also in the place that b has left
		}
		idle := b == nil && len(p.batches) == 0
		p.unlock()
		if b != nil || idle {
			return b, nil
		}
		if p.executor.step() {
			continue
		}
		p.waiting.Store(true)
		select {
		case <-p.wake:
		case <-p.ctx.Done():
		case <-alarm:
			return nil, p.late()
		}
	}
}

// fills reports whether workers write to rows of buffers, and do not make batches.
func (p *prefetcher) fills() bool {
	return !p.loose && p.l.opts.Collate == nil && p.l.opts.BatchSize != Single && !p.l.streams()
}

// late is the error of a batch that has not come in time.
func (p *prefetcher) late() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.batches[0]
	return fmt.Errorf("%w: batch %d was not ready after %v, %d requests for it are under way",
		ErrTimeout, b.number, p.l.opts.Timeout, b.requests)
}

// deliverable takes a batch that can be delivered out of those that are planned, nil if there is
// none. mu is held.
func (p *prefetcher) deliverable() *batchState {
	for i := 0; i < len(p.batches); {
		b := p.batches[i]
		switch {
		case b.phase != ready && !p.l.opts.AsReady:
			return nil
		case b.phase != ready:
			i++
		case b.empty():
			p.batches = slices.Delete(p.batches, i, i+1)
			p.bytes -= b.bytes
			p.advance()
		default:
			p.batches = slices.Delete(p.batches, i, i+1)
			p.bytes -= b.bytes
			return b
		}
	}
	return nil
}

// unlock lets go of mu and submits what has to be. What one batch needs is on its way before the
// memory of the next is looked for.
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
		p.advance()
	}
}

// ready returns how many batches could be delivered.
func (p *prefetcher) ready() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.batches {
		if b.phase == ready {
			n++
		}
	}
	return n
}

// leave is the end of the consumer. What is under way comes to an end, for nobody.
func (p *prefetcher) leave() {
	p.mu.Lock()
	defer p.unlock()
	p.left = true
	for _, b := range p.batches {
		if b.requests == 0 {
			p.l.forget(b)
		}
	}
	p.batches = nil
}
