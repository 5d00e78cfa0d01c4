package bench

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// A spawned is the report of a new process: the time of its first statement.
type spawned struct {
	Rank int
	At   time.Duration // monotonic clock
}

var newborn = shoal.Register("bench newborn", func(ctx context.Context, rank int, starts *ipc.Sender[spawned]) error {
	now := sys.Monotonic()
	defer starts.Close()
	if err := starts.Put(ctx, spawned{rank, now}); err != nil {
		return err
	}
	<-ctx.Done() // all must be alive when the last one reports
	return nil
})

// startBrood starts n processes with method m, calls do after all have reported, and cancels
// them after do has returned. latest is the time of the last process's first statement on the
// clock [sys.Monotonic].
func startBrood(ctx context.Context, m shoal.StartMethod, n int,
	do func(latest time.Duration, all []*shoal.Process) error) (err error) {
	q, err := ipc.NewQueue[spawned](n)
	if err != nil {
		return err
	}
	defer q.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Start: m, Workers: n})
	// Cancellation is their normal end.
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

// firstStatement returns a probe of the nanoseconds from the start of n processes to the first
// statement of the last one. In a quick run there are at most 2 processes.
func firstStatement(h *environment, n int) *Probe {
	if h.quick {
		n = min(n, 2)
	}
	return &Probe{Measure: func(ctx context.Context) (ns float64, err error) {
		begin := sys.Monotonic()
		err = startBrood(ctx, shoal.SpawnStart, n, func(latest time.Duration, _ []*shoal.Process) error {
			ns = float64(latest - begin)
			return nil
		})
		return ns, err
	}}
}

// warmFirstStatement returns a probe of the nanoseconds from the start of a process to its first
// statement, for one that [shoal.Warm] has started in advance.
func warmFirstStatement() *Probe {
	return &Probe{Measure: func(ctx context.Context) (ns float64, err error) {
		if err := shoal.Warm(ctx, 1, shoal.Options{}); err != nil {
			return 0, err
		}
		begin := sys.Monotonic()
		err = startBrood(ctx, shoal.WarmStart, 1, func(latest time.Duration, _ []*shoal.Process) error {
			ns = float64(latest - begin)
			return nil
		})
		return ns, err
	}}
}
