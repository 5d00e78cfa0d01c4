package data

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/pool"
)

// A processExecutor runs fetches in worker processes. For a Dataset they form one pool. For a
// Stream, where each part stays with one worker, each worker has a pool of its own.
type processExecutor struct {
	loader  uint64
	pools   []*pool.Pool
	parts   lanes
	fetches sync.WaitGroup // submitted and not completed
	config  workerConfig
	ended   atomic.Bool // a pool has lost its workers and cannot replace them
}

// newProcessExecutor starts the processes and returns without waiting for them. The caller must
// close the executor.
func newProcessExecutor(c workerConfig, opts shoal.Options) (*processExecutor, error) {
	e := &processExecutor{loader: loaders.Add(1)}
	c.Loader, c.Shared = e.loader, true
	e.config = c
	n, each := 1, c.Workers
	if _, ok := c.Source.(Stream); ok {
		n, each = each, n
		opts.Threads = max(1, shoal.Threads()/n)
	}
	for k := range n {
		c.First = k
		p, err := pool.New(context.Background(),
			pool.Options{Workers: each, Initializer: openWorker(c), StartRetries: c.Retries, Process: opts})
		if err != nil {
			e.close()
			return nil, fmt.Errorf("data: start workers: %w", err)
		}
		e.pools = append(e.pools, p)
	}
	return e, nil
}

var loaders atomic.Uint64

func (e *processExecutor) submit(f *fetch) {
	r := f.request()
	r.Loader, r.Deadline = e.loader, f.p.deadline
	result := fetchInProcess.ApplyAsync(e.pools[e.parts.workerFor(f.b.part.Index, len(e.pools))], r)
	f.release(r)
	// When the loop ends, the worker's context is canceled.
	stop := context.AfterFunc(f.p.ctx, func() { result.Cancel() })
	e.fetches.Add(1)
	result.Then(func(r fetchResult, err error) {
		stop()
		if err == nil {
			defer e.fetches.Done()
			f.p.completeFetch(f, r, nil)
			return
		}
		if errors.Is(err, pool.ErrBroken) {
			e.ended.Store(true)
		}
		// The pool may report a failure while it holds a lock and cannot accept tasks.
		go func() {
			defer e.fetches.Done()
			f.p.completeFetch(f, fetchResult{}, err)
		}()
	})
}

// request returns the request to a worker. The caller must pass it to [fetch.release] once a
// goroutine has run the request, or a pool has accepted it.
func (f *fetch) request() fetchRequest {
	r := fetchRequest{Epoch: f.p.epoch, Part: f.b.part, From: f.b.from, N: f.n, Batch: batchKey(f.p.epoch, f.b.number)}
	if f.b.part.Count == 0 {
		r.Indices = f.b.indices[f.from : f.from+f.n]
	}
	if f.kind == fetchRows {
		r.Into, r.Like = f.b.buffer.allRows(), f.b.like
		if f.n < f.b.buffer.rows {
			r.Into = r.Into.viewRows(f.from, f.n)
		}
	}
	return r
}

// release closes the views that [fetch.request] made for r. The tensors of the whole buffer stay
// open.
func (f *fetch) release(r fetchRequest) {
	if r.Into != nil && f.n < f.b.buffer.rows {
		closeAll(r.Into)
	}
}

// awaitReady waits until all workers have opened the data set. It returns [pool.ErrBroken] with
// the reason if one cannot, or the cause of ctx.
func (e *processExecutor) awaitReady(ctx context.Context) error {
	for _, p := range e.pools {
		if err := p.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// closeAfterFetches waits for all submitted fetches, and then closes the executor. No fetch may
// be submitted meanwhile.
func (e *processExecutor) closeAfterFetches() {
	for _, p := range e.pools {
		p.Finish()
	}
	for _, p := range e.pools {
		p.Join(context.Background())
	}
	e.close()
}

func (e *processExecutor) runOne() bool { return false }

func (e *processExecutor) isBroken() bool { return e.ended.Load() }

func (e *processExecutor) close() {
	for _, p := range e.pools {
		p.Close()
	}
	e.fetches.Wait()
	if t := e.config.Timeline; t != nil {
		for id := range e.config.Workers {
			t.End(1+e.config.Track+id, time.Now()) // the process itself does not end its track
		}
	}
}

// workersHere holds the workers of this process by [workerConfig.Loader]. A worker process has one.
var workersHere sync.Map // uint64 -> *worker

// Functions registered for worker processes.
var (
	openWorker = pool.RegisterInit("data.open", func(ctx context.Context, c workerConfig) error {
		w, err := newWorker(ctx, c, c.First+pool.Rank(ctx))
		if err == nil {
			w.then = arena.Blocked
			workersHere.Store(c.Loader, w)
		}
		return err
	})
	fetchInProcess = pool.Register("data.fetch", func(ctx context.Context, r fetchRequest) (fetchResult, error) {
		defer closeAll(r.Into)
		w, ok := workersHere.Load(r.Loader)
		if !ok {
			return fetchResult{}, errors.New("data: worker has no data set")
		}
		here := w.(*worker)
		result := here.runRequest(here.loopContext(ctx, r.Deadline), r)
		result.Kind = Processes
		if here.track != nil || here.shown != nil {
			result.sent = func() {
				here.shown.Turn(arena.Idle, r.Batch, time.Now())
				here.recordDeliver()
				here.Trace.Flush()
			}
		}
		return result, nil
	})
)

// fields is fetchResult without its methods, so that its encoding plan does not call them.
type fields fetchResult

var fieldsPlan = sync.OnceValues(codec.PlanOf[fields])

// MarshalWire encodes a result. The ownership of its batch passes to the receiver.
func (r *fetchResult) MarshalWire(e *codec.Encoder) error {
	plan, err := fieldsPlan()
	if err != nil {
		return err
	}
	b := r.Batch
	sent := r.sent
	e.OnDone(codec.WatcherFunc(func(bool) {
		closeAll(b)
		if sent != nil {
			sent()
		}
	}))
	return plan.Encode(e, fields(*r))
}

// UnmarshalWire decodes a result written by MarshalWire.
func (r *fetchResult) UnmarshalWire(d *codec.Decoder) error {
	plan, err := fieldsPlan()
	if err != nil {
		return err
	}
	f, err := plan.Decode(d)
	*r = fetchResult(f)
	return err
}
