package data

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/wire"
)

// A processes is a crew of processes: one pool, or for a Stream, whose parts stay with their workers, a pool of one worker for each.
type processes struct {
	number  uint64
	pools   []*pool.Pool
	failing sync.WaitGroup
}

// newProcesses starts them and does not wait.
func newProcesses(s station, opts shoal.Options) (*processes, error) {
	c := &processes{number: loaders.Add(1)}
	s.Loader, s.Shared = c.number, true
	n, each := 1, s.Workers
	if _, ok := s.Source.(Stream); ok {
		n, each = each, n
		opts.Threads = max(1, shoal.Threads()/n)
	}
	for k := range n {
		s.First = k
		p, err := pool.New(context.Background(), pool.Options{Workers: each, Initializer: open.With(s), Process: opts})
		if err != nil {
			c.close()
			return nil, fmt.Errorf("data: start workers: %w", err)
		}
		c.pools = append(c.pools, p)
	}
	return c, nil
}

var loaders atomic.Uint64

func (c *processes) submit(j *job) {
	o := j.order()
	r := fetch.ApplyAsync(c.pools[j.s.part.Index%len(c.pools)], request{c.number, o})
	j.release(o)
	r.Then(func(a reply, err error) {
		if err == nil {
			j.w.finished(j, outcome(a), nil)
			return
		}
		c.failing.Go(func() { j.w.finished(j, outcome{}, err) }) // the pool may tell of a failure while it cannot take jobs
	})
}

// ready waits until all have opened the data set.
func (c *processes) ready(ctx context.Context) error {
	for _, p := range c.pools {
		if err := p.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish is close after all jobs are done.
func (c *processes) finish() {
	for _, p := range c.pools {
		p.Finish()
	}
	for _, p := range c.pools {
		p.Join(context.Background())
	}
	c.close()
}

func (c *processes) step() bool { return false }

func (c *processes) close() {
	for _, p := range c.pools {
		p.Close()
	}
	c.failing.Wait()
}

// stations are the workers in this process, by the numbers of their Loaders: one, unless workers are goroutines.
var stations sync.Map // of *worker by uint64

// open and fetch are what workers that are processes do.
var (
	open = pool.RegisterInit("data.open", func(ctx context.Context, s station) error {
		w, err := newWorker(ctx, s, s.First+pool.Rank(ctx))
		if err == nil {
			stations.Store(s.Loader, w)
		}
		return err
	})
	fetch = pool.Register("data.fetch", func(ctx context.Context, r request) (reply, error) {
		defer closeAll(r.Order.Into)
		w, ok := stations.Load(r.Loader)
		if !ok {
			return reply{}, errors.New("data: a worker without its data set")
		}
		out := w.(*worker).do(ctx, r.Order)
		out.Kind = Processes
		return reply(out), nil
	})
)

// A request is an order for a worker that is a process.
type request struct {
	Loader uint64
	Order  order
}

// A reply is an outcome that crosses.
type reply outcome

var outcomePlan = sync.OnceValues(wire.PlanOf[outcome])

// MarshalWire writes an outcome. Its batch, made in the worker, is then the receiver's alone.
func (r *reply) MarshalWire(e *wire.Encoder) error {
	plan, err := outcomePlan()
	if err != nil {
		return err
	}
	b := r.Batch
	e.OnDone(func(bool) { closeAll(b) })
	return plan.Encode(e, outcome(*r))
}

// UnmarshalWire is the counterpart of MarshalWire.
func (r *reply) UnmarshalWire(d *wire.Decoder) error {
	plan, err := outcomePlan()
	if err != nil {
		return err
	}
	out, err := plan.Decode(d)
	*r = reply(out)
	return err
}
