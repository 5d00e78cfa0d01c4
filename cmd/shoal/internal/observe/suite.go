package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/bench"
	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// Suite is the benchmark suite.
var Suite = bench.NewSuite("observe", "observing a program with 64 processes and 100,000 blocks", "", 5, suiteRows)

const (
	workers = 63 // in addition to the root process
	runners = 2
	blocks  = 100_000
	every   = time.Second

	mostTime = 10e6 // ns, 1 % of a CPU at one observation per second
	leastRun = 0.98 // required fraction of the unobserved throughput
	alone    = "observe_alone"
)

// work is passed to each worker at start.
type work struct {
	Ready *ipc.Sender[int]
	Go    *ipc.Event // set while the runners should run
	Done  *ipc.Value[int64]
}

// worker signals that it is ready. The first workers are runners: they allocate, share and free
// tensors while the event is set. The others wait until they are stopped.
var worker = shoal.Register("bench observed", func(ctx context.Context, rank int, w work) error {
	if err := w.Ready.Put(ctx, rank); err != nil {
		return err
	}
	if rank >= runners {
		<-ctx.Done()
		return nil
	}
	q, err := ipc.NewQueue[*tensor.Tensor](4)
	if err != nil {
		return err
	}
	defer q.Close()
	for w.Go.Wait(ctx) == nil {
		const at = 64
		for range at {
			if err := passTensor(ctx, q); err != nil {
				return err
			}
		}
		if _, err := w.Done.Add(at); err != nil {
			return err
		}
	}
	return nil
})

// passTensor sends a new tensor through a queue and closes the received one.
func passTensor(ctx context.Context, q *ipc.Queue[*tensor.Tensor]) error {
	t, err := tensor.NewShared(tensor.Float32, 1024)
	if err != nil {
		return err
	}
	tensor.Data[float32](t)[0] = 1
	if err := q.Put(ctx, t.Give()); err != nil {
		return errors.Join(err, t.Close())
	}
	back, err := q.Get(ctx)
	if err != nil {
		return err
	}
	return back.Close()
}

// A program is the observed program: this process with its workers and the tensors that it
// holds. start must be called before a measurement, and close after the last one.
type program struct {
	work
	held  []*tensor.Tensor
	group *shoal.Group
	stop  context.CancelFunc
	scale func(int) int
}

func suiteRows(ctx context.Context, scale func(n int) int) ([]bench.Case, func() error, error) {
	p := &program{scale: scale}
	if err := p.start(ctx); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start observed program: %w", err), p.close())
	}
	return []bench.Case{
		{Name: "observe_reading", Unit: bench.Nanoseconds, Ours: &bench.Probe{Measure: p.measureReading},
			Target: func(r bench.Result, _ []bench.Result) (string, bool) {
				return "≤ 1 % of a CPU at 1 Hz", r.Value <= mostTime
			}},
		{Name: alone, Unit: bench.PerSecond, Ours: &bench.Probe{Measure: p.run}},
		{Name: "observe_watched", Unit: bench.PerSecond, Ours: &bench.Probe{Measure: p.runObserved},
			Target: func(r bench.Result, before []bench.Result) (string, bool) {
				i := slices.IndexFunc(before, func(r bench.Result) bool { return r.Name == alone })
				return fmt.Sprintf("≥ %.2f × %s", leastRun, alone), i >= 0 && r.Value >= leastRun*before[i].Value
			}},
	}, p.close, nil
}

func (p *program) start(ctx context.Context) error {
	ctx, p.stop = context.WithCancel(ctx)
	ready, err := ipc.NewQueue[int](workers)
	if err != nil {
		return err
	}
	defer ready.Close()
	p.Ready = ready.Sender()
	if p.Go, err = ipc.NewEvent(); err != nil {
		return err
	}
	if p.Done, err = ipc.NewValue[int64](0); err != nil {
		return err
	}
	for range p.scale(blocks) {
		t, err := tensor.NewShared(tensor.Uint8, 16)
		if err != nil {
			return err
		}
		p.held = append(p.held, t)
	}
	p.group = shoal.NewGroup(ctx, shoal.Options{Workers: workers})
	for range workers {
		worker.Go(p.group, p.work)
	}
	for range workers {
		if _, err := ready.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) close() (err error) {
	p.stop()
	if p.group != nil {
		p.group.Close() // ignored: reports that the workers were stopped
	}
	for _, t := range p.held {
		err = errors.Join(err, t.Close())
	}
	if p.Go != nil {
		err = errors.Join(err, p.Go.Close())
	}
	if p.Done != nil {
		err = errors.Join(err, p.Done.Close())
	}
	return err
}

// observeDomains observes the domains once a second until ctx is done, when it returns nil.
func observeDomains(ctx context.Context) error {
	var w domains.Watcher
	for {
		if _, err := w.Look(ctx, every); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// measureReading returns the processor time of one observation in nanoseconds, averaged over
// ten. A [domains.Watcher] makes one thorough observation in ten.
func (p *program) measureReading(ctx context.Context) (ns float64, err error) {
	var w domains.Watcher
	if _, err := w.Look(ctx, 10*time.Millisecond); err != nil { // the first one has no predecessor
		return 0, err
	}
	looks := max(1, p.scale(10))
	before := sys.ProcessTime()
	for range looks {
		c, err := w.Look(ctx, 100*time.Millisecond)
		if err != nil {
			return 0, err
		}
		if len(c.Domains) == 0 {
			return 0, errors.New("program not observed")
		}
	}
	return float64(sys.ProcessTime()-before) / float64(looks), nil
}

// run lets the runners work for about three seconds, or 0.1 s in a quick run, and returns the
// number of tensors per second that they pass. It waits longer if they pass none, and returns an
// error after a hundred times as long.
func (p *program) run(ctx context.Context) (perSecond float64, err error) {
	if err := p.Go.Set(); err != nil {
		return 0, err
	}
	defer p.Go.Clear()
	span := time.Duration(max(1, p.scale(30))) * every / 10
	from, err := p.Done.Load()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for range 100 { // on a busy machine the runners may stall for a while
		select {
		case <-time.After(span):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		if to, err := p.Done.Load(); err != nil || to > from {
			return float64(to-from) / time.Since(begin).Seconds(), err
		}
	}
	return 0, errors.New("workers transfer nothing")
}

func (p *program) runObserved(ctx context.Context) (perSecond float64, err error) {
	looking, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = observeDomains(looking) })
	perSecond, err = p.run(ctx)
	stop()
	wg.Wait()
	return perSecond, errors.Join(err, failed)
}
