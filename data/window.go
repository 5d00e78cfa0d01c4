package data

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A slot is a batch from its planning to its delivery.
type slot struct {
	number  int   // of the batch in this iteration
	indices []int // its samples

	part     Part // of a Stream, instead of indices
	progress *progress
	before   *slot // that which has to be read before, nil once it was
	from     int   // samples of the part before this batch
	size     int   // samples wanted
	read     int   // samples read
	end      bool  // of the part

	bytes int    // as far as they are known, and else as many as those of the batch before
	frame *frame // nil until the layout is known, and where the worker makes the batch
	rows  bool   // the batch has a row for each of indices, also for those that are bad
	batch Batch  // the outcome
	spec  string // of the batch, if it is structured
	like  string // of its samples
	open  int    // jobs under way
	begun bool
	sure  bool // the layout is that of its own first sample
	other bool // the layout has turned out to be another one
	ready bool
	done  atomic.Bool   // is ready, for who does not have mu
	bad   []SampleError // At is where in the batch
	err   error
}

// A window is one iteration over a Loader: the batches that are ready or being made, ahead of the consumer. Whoever has finished a job
// moves it on, so that no goroutine has to be woken for it.
type window struct {
	l     *Loader
	ctx   context.Context
	epoch int
	plan  plan
	mark  *mark
	crew  crew
	wake  chan struct{} // holds one token: something has become ready

	waiting atomic.Bool // the consumer is, or was until something became ready

	mu     sync.Mutex
	line   []*slot // planned and not delivered, in order
	bytes  int     // of all batches in line
	usual  int     // of the last batch that told
	layout layout  // of the last batch that told
	spec   string  // of such a batch, if it is structured
	like   string  // of its samples
	loose  bool    // samples are not of one layout: workers make the batches
	out    []*job  // to be submitted when mu is free
	more   bool    // advance has not come to its end
	left   bool    // the consumer has
	over   bool    // nothing is planned any more
	cost   time.Duration
	prints map[uint64]int // which part began like that
}

// take waits for the next batch; nil if there are none any more.
func (w *window) take() (*slot, error) {
	var alarm <-chan time.Time
	if d := w.l.opts.Timeout; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		alarm = t.C
	}
	for {
		if err := w.l.ended(w.ctx); err != nil {
			return nil, err
		}
		w.mu.Lock()
		s := w.deliverable()
		if s == nil || w.l.opts.Workers > 0 {
			w.advance() // also in the place that s has left
		}
		idle := s == nil && len(w.line) == 0
		w.unlock()
		if s != nil || idle {
			return s, nil
		}
		if w.crew.step() {
			continue
		}
		w.waiting.Store(true)
		select {
		case <-w.wake:
		case <-w.ctx.Done():
		case <-alarm:
			return nil, w.late()
		}
	}
}

// fills reports whether workers write to rows of frames, and do not make batches.
func (w *window) fills() bool {
	return !w.loose && w.l.opts.Collate == nil && w.l.opts.BatchSize != Single
}

// late is the error of a batch that has not come in time.
func (w *window) late() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Errorf("%w: batch %d was not ready after %v, %d jobs of it are under way", ErrTimeout, w.line[0].number, w.l.opts.Timeout, w.line[0].open)
}

// deliverable takes a batch out of the line that can be delivered, nil if there is none. mu is held.
func (w *window) deliverable() *slot {
	for i := 0; i < len(w.line); {
		s := w.line[i]
		switch {
		case s.ready && s.batch == nil && s.err == nil && len(s.bad) == 0: // the end of a part
			w.line = slices.Delete(w.line, i, i+1)
			w.advance()
			continue
		case s.ready:
			w.line = slices.Delete(w.line, i, i+1)
			w.bytes -= s.bytes
			return s
		case !w.l.opts.AsReady:
			return nil
		}
		i++
	}
	return nil
}

// unlock lets go of mu and submits what has to be. What one batch needs is on its way before the memory of the next is looked for.
func (w *window) unlock() {
	for {
		jobs, more := w.out, w.more
		w.out, w.more = nil, false
		w.mu.Unlock()
		for _, j := range jobs {
			w.crew.submit(j)
		}
		if !more {
			return
		}
		w.mu.Lock()
		w.advance()
	}
}

// ready returns how many batches could be delivered.
func (w *window) ready() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.line {
		if s.ready {
			n++
		}
	}
	return n
}

// leave is the end of the consumer. What is under way comes to an end, for nobody.
func (w *window) leave() {
	w.mu.Lock()
	defer w.unlock()
	w.left = true
	for _, s := range w.line {
		if s.open == 0 {
			w.l.forget(s)
		}
	}
	w.line = nil
}
