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
	"github.com/shoal-mp/shoal/pool"
)

// A processExecutor is processes: one pool, or for a Stream, whose parts stay with their workers, a
// pool of one worker for each.
type processExecutor struct {
	loader  uint64
	pools   []*pool.Pool
	parts   lanes
	failing sync.WaitGroup
	config  workerConfig
	ended   atomic.Bool // a pool has no worker any more and will have none
}

// newProcessExecutor starts them and does not wait.
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
	r.Loader = e.loader
	result := fetchInProcess.ApplyAsync(e.pools[e.parts.lane(f.b.part.Index, len(e.pools))], r)
	f.release(r)
	result.Then(func(r fetchResult, err error) {
		if err == nil {
			f.p.finished(f, r, nil)
			return
		}
		if errors.Is(err, pool.ErrBroken) {
			e.ended.Store(true)
		}
		// The pool may tell of a failure while it cannot take tasks.
		e.failing.Go(func() { f.p.finished(f, fetchResult{}, err) })
	})
}

// ready waits until all have opened the data set.
func (e *processExecutor) ready(ctx context.Context) error {
	for _, p := range e.pools {
		if err := p.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish is close after all fetches are done.
func (e *processExecutor) finish() {
	for _, p := range e.pools {
		p.Finish()
	}
	for _, p := range e.pools {
		p.Join(context.Background())
	}
	e.close()
}

func (e *processExecutor) step() bool { return false }

func (e *processExecutor) broken() bool { return e.ended.Load() }

func (e *processExecutor) close() {
	for _, p := range e.pools {
		p.Close()
	}
	e.failing.Wait()
	if t := e.config.Timeline; t != nil {
		for id := range e.config.Workers {
			t.End(1+e.config.Track+id, time.Now()) // a process that ends does not say so
		}
	}
}

// workersHere are the workers in this process, by the numbers of their Loaders: one, unless workers
// are goroutines.
var workersHere sync.Map // of *worker by uint64

// What workers that are processes do.
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
			return fetchResult{}, errors.New("data: a worker without its data set")
		}
		here := w.(*worker)
		result := here.do(ctx, r)
		result.Kind = Processes
		if here.track != nil || here.shown != nil {
			result.sent = func() {
				here.shown.Turn(arena.Idle, r.Batch, time.Now())
				here.delivered()
				here.Trace.Flush()
			}
		}
		return result, nil
	})
)
