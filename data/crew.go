package data

import (
	"context"
	"runtime"
	"sync"
)

// A job is an order on its way: some rows of a slot, or all of it.
type job struct {
	w     *window
	s     *slot
	from  int // index of the first sample, in the slot
	n     int
	kind  jobKind
	deads int // workers that have died of it
}

type jobKind int

const (
	fillJob  jobKind = iota // rows of the slot's frame
	probeJob                // the first sample, to learn what a frame must be like
	makeJob                 // the worker makes the batch
)

// A crew is the workers of a Loader. Each job that is submitted is reported to its window once, perhaps before submit returns, and before close
// does.
type crew interface {
	submit(j *job)
	step() bool // does one job in the caller's goroutine, where nobody else would
	close()
}

// A locals is a crew of goroutines, or of the consumer alone.
type locals struct {
	station station
	wg      sync.WaitGroup

	mu     sync.Mutex
	more   sync.Cond
	jobs   []*job
	lanes  [][]*job // of a Stream, whose parts stay with their workers
	closed bool
	alone  *worker // the consumer
	err    error   // of its Open
}

func newLocals(s station) *locals {
	c := &locals{station: s, lanes: make([][]*job, max(1, s.Workers))}
	c.more.L = &c.mu
	for id := range s.Workers {
		c.wg.Go(func() { c.serve(id) })
	}
	return c
}

func (c *locals) submit(j *job) {
	if !c.enqueue(j) {
		j.w.finished(j, outcome{}, ErrClosed)
	}
}

// enqueue puts a job where a worker will find it. It reports false if the crew is closed.
func (c *locals) enqueue(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return false
	case j.s.part.Count > 0:
		lane := &c.lanes[j.s.part.Index%len(c.lanes)]
		*lane = append(*lane, j)
		c.more.Broadcast()
	default:
		c.jobs = append(c.jobs, j)
		c.more.Signal()
	}
	return true
}

// next waits for a job that worker id may do; nil if the crew is closed.
func (c *locals) next(id int) (j *job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.closed {
			return nil
		}
		if j = c.pop(id); j != nil {
			return j
		}
		c.more.Wait()
	}
}

// pop takes a job, nil if there is none. mu is held.
func (c *locals) pop(id int) (j *job) {
	from := &c.jobs
	if lane := &c.lanes[id]; len(*lane) > 0 {
		from = lane
	}
	if len(*from) == 0 {
		return nil
	}
	j, (*from)[0] = (*from)[0], nil
	*from = (*from)[1:]
	return j
}

// serve does jobs until the crew is closed.
func (c *locals) serve(id int) {
	w, err := newWorker(context.Background(), c.station, id)
	if err == nil {
		defer w.close()
	}
	for j := c.next(id); j != nil; j = c.next(id) {
		c.do(w, err, j)
		if j.s.done.Load() && j.w.waiting.Swap(false) {
			runtime.Gosched() // to the consumer, who would otherwise wait until a worker has nothing to do
		}
	}
}

// do does a job. err is why there is no worker.
func (c *locals) do(w *worker, err error, j *job) {
	var out outcome
	if err == nil {
		err = context.Cause(j.w.ctx)
	}
	if err == nil {
		o := j.order()
		out = w.do(j.w.ctx, o)
		j.release(o)
	}
	j.w.finished(j, out, err)
}

func (c *locals) step() bool {
	if c.station.Workers > 0 {
		return false
	}
	if c.alone == nil && c.err == nil {
		c.alone, c.err = newWorker(context.Background(), c.station, 0)
	}
	c.mu.Lock()
	j := c.pop(0)
	c.mu.Unlock()
	if j == nil {
		return false
	}
	c.do(c.alone, c.err, j)
	return true
}

// close waits for the jobs that have been begun. The others fail.
func (c *locals) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.more.Broadcast()
	c.wg.Wait()
	for id := range c.lanes {
		for j := c.pop(id); j != nil; j = c.pop(id) { // nobody else is left
			j.w.finished(j, outcome{}, ErrClosed)
		}
	}
	if c.alone != nil {
		c.alone.close()
	}
}

// order returns what the worker is told.
func (j *job) order() order {
	o := order{Epoch: j.w.epoch, Part: j.s.part, From: j.s.from, N: j.n}
	if j.s.part.Count == 0 {
		o.Indices = j.s.indices[j.from : j.from+j.n]
	}
	if j.kind == fillJob {
		o.Into, o.Like = j.s.frame.all(), j.s.like
		if j.n < j.s.frame.rows {
			o.Into = o.Into.rows(j.from, j.n)
		}
	}
	return o
}

// release closes the views of an order.
func (j *job) release(o order) {
	if o.Into != nil && j.n < j.s.frame.rows {
		closeAll(o.Into)
	}
}
