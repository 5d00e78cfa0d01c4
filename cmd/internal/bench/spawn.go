package bench

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// A birth is what a new process reports: when its first statement ran.
type spawned struct {
	Rank int
	At   time.Duration // on the machine's clock
}

var newborn = shoal.Register("bench newborn", func(ctx context.Context, rank int, starts *ipc.Sender[spawned]) error {
	now := sys.Monotonic()
	defer starts.Close()
	if err := starts.Put(ctx, spawned{rank, now}); err != nil {
		return err
	}
	<-ctx.Done() // the last one is to find the first one alive
	return nil
})

// brood starts n processes, each by m, and calls do when all of them have reported; latest is when
// the last one's first statement ran.
func brood(ctx context.Context, m shoal.StartMethod, n int,
	do func(latest time.Duration, all []*shoal.Process) error) (err error) {
	q, err := ipc.NewQueue[spawned](n)
	if err != nil {
		return err
	}
	defer q.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Start: m, Workers: n})
	// That they are cancelled is how they end.
	defer func() {
		if e := g.Close(); err == nil && e != nil && !errors.Is(e, context.Canceled) {
			err = e
		}
	}()
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all []*shoal.Process
	for range n {
		p := newborn.Go(g, q.Sender())
		all = append(all, p)
		go func() { cancel(p.Wait(watched)) }()
	}
	var latest time.Duration
	for range n {
		b, err := q.Get(watched)
		if err != nil {
			return err
		}
		latest = max(latest, b.At)
	}
	return do(latest, all)
}

// firstStatement measures from the first start of n processes to the first statement of the last
// one.
func firstStatement(h *environment, n int) *Probe {
	if h.quick {
		n = min(n, 2)
	}
	return &Probe{Measure: func(ctx context.Context) (ns float64, err error) {
		begin := sys.Monotonic()
		err = brood(ctx, shoal.SpawnStart, n, func(latest time.Duration, _ []*shoal.Process) error {
			ns = float64(latest - begin)
			return nil
		})
		return ns, err
	}}
}

// warmFirstStatement measures the same of one process that waited for its job.
func warmFirstStatement() *Probe {
	return &Probe{Measure: func(ctx context.Context) (ns float64, err error) {
		if err := shoal.Warm(ctx, 1, shoal.Options{}); err != nil {
			return 0, err
		}
		begin := sys.Monotonic()
		err = brood(ctx, shoal.WarmStart, 1, func(latest time.Duration, _ []*shoal.Process) error {
			ns = float64(latest - begin)
			return nil
		})
		return ns, err
	}}
}
