package data

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/goexit"
)

// A goroutineExecutor runs fetches in worker goroutines, or in the consumer's goroutine if there
// are no workers.
type goroutineExecutor struct {
	config workerConfig
	wg     sync.WaitGroup

	mu      sync.Mutex
	more    sync.Cond
	fetches []*fetch
	parts   lanes
	lanes   [][]*fetch // queues of each worker for the parts of a Stream that are assigned to it
	closed  bool
	alone   *worker // the consumer as a worker, made by runOne
	err     error   // error of making alone
}

func newGoroutineExecutor(c workerConfig) *goroutineExecutor {
	e := &goroutineExecutor{config: c, lanes: make([][]*fetch, max(1, c.Workers))}
	e.more.L = &e.mu
	for id := range c.Workers {
		e.wg.Go(func() { e.serve(id, nil, nil) })
	}
	return e
}

func (e *goroutineExecutor) submit(f *fetch) {
	if !e.enqueue(f) {
		f.p.completeFetch(f, fetchResult{}, ErrClosed)
	}
}

// enqueue queues a fetch for a worker. It returns false if the executor is closed.
func (e *goroutineExecutor) enqueue(f *fetch) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return false
	case f.b.part.Count > 0:
		lane := &e.lanes[e.parts.workerFor(f.b.part.Index, len(e.lanes))]
		*lane = append(*lane, f)
		e.more.Broadcast()
	default:
		e.fetches = append(e.fetches, f)
		e.more.Signal()
	}
	return true
}

// awaitFetch waits for a fetch for worker id. It returns nil if the executor is closed.
func (e *goroutineExecutor) awaitFetch(id int) (f *fetch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.closed {
			return nil
		}
		if f = e.pop(id); f != nil {
			return f
		}
		e.more.Wait()
	}
}

// pop removes and returns a fetch for worker id, or nil if there is none. The caller must hold
// e.mu.
func (e *goroutineExecutor) pop(id int) (f *fetch) {
	from := &e.fetches
	if lane := &e.lanes[id]; len(*lane) > 0 {
		from = lane
	}
	if len(*from) == 0 {
		return nil
	}
	f, (*from)[0] = (*from)[0], nil
	*from = (*from)[1:]
	return f
}

// serve runs fetches as worker id until the executor is closed. If w and err are both nil, it
// makes the worker; if err is not nil, all fetches fail with it. If the data set calls
// [runtime.Goexit] in a fetch, another goroutine continues with the same worker; if it does so
// in Open, all fetches of this worker fail.
func (e *goroutineExecutor) serve(id int, w *worker, err error) {
	closed := false
	defer func() {
		if !closed {
			e.wg.Go(func() { e.serve(id, w, err) })
		}
	}()
	if w == nil && err == nil {
		err = workerExitError(id) // overwritten when newWorker returns
		w, err = newWorker(context.Background(), e.config, id)
	}
	for f := e.awaitFetch(id); f != nil; f = e.awaitFetch(id) {
		if runFetch(w, err, f) && f.p.waiting.Swap(false) {
			runtime.Gosched() // let the consumer run, which otherwise waits until a worker is idle
		}
	}
	closed = true
	if w != nil {
		w.close()
	}
}

// workerExitError returns the error of a worker that called [runtime.Goexit]. It is the error of a
// worker process that died, because a process would have died too.
func workerExitError(id int) error {
	return &shoal.ProcessError{Func: "data.Loader", Rank: id, PID: os.Getpid(), ExitCode: -1,
		Err: fmt.Errorf("%w: %w", shoal.ErrPanic, goexit.Err)}
}

// runFetch runs a fetch and reports whether its batch is ready. If err is not nil, there is no
// worker, and the fetch fails with err. A panic or a call of [runtime.Goexit] fails the fetch: this
// goroutine belongs to the library, so the program could not recover it.
func runFetch(w *worker, err error, f *fetch) bool {
	if err == nil {
		err = context.Cause(f.p.ctx)
	}
	var result fetchResult
	if err == nil {
		result, err = tryFetch(w, f)
	}
	isReady := f.p.completeFetch(f, result, err)
	if w != nil {
		w.recordDeliver()
	}
	return isReady
}

// tryFetch runs a fetch on a worker and returns its result. A panic of the data set becomes an
// error that wraps [shoal.ErrPanic]. If the data set calls [runtime.Goexit], tryFetch does not
// return: it completes the fetch with the error of a dead worker.
func tryFetch(w *worker, f *fetch) (result fetchResult, err error) {
	done := false
	defer func() {
		if !done {
			f.p.completeFetch(f, fetchResult{}, workerExitError(w.id))
		}
	}()
	err = recoverPanic(func() error {
		r := f.request()
		defer f.release(r)
		result = w.runRequest(f.p.ctx, r)
		return nil
	})
	done = true
	return result, err
}

func (e *goroutineExecutor) isBroken() bool { return false }

func (e *goroutineExecutor) runOne() bool {
	if e.config.Workers > 0 {
		return false
	}
	if e.alone == nil && e.err == nil {
		e.alone, e.err = newWorker(context.Background(), e.config, 0)
	}
	e.mu.Lock()
	f := e.pop(0)
	e.mu.Unlock()
	if f == nil {
		return false
	}
	runFetch(e.alone, e.err, f)
	return true
}

// close waits for running fetches and fails the queued ones with [ErrClosed].
func (e *goroutineExecutor) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.more.Broadcast()
	e.wg.Wait()
	for id := range e.lanes {
		for f := e.pop(id); f != nil; f = e.pop(id) { // all workers have ended
			f.p.completeFetch(f, fetchResult{}, ErrClosed)
		}
	}
	if e.alone != nil {
		e.alone.close()
	}
}
