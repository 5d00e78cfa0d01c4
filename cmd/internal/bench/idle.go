package bench

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// idler waits for a message that does not come. It says once that it is there.
var idler = shoal.Register("bench idler", func(ctx context.Context, _ int, c *ipc.PipeEnd[int, int]) error {
	defer c.Close()
	if err := c.Send(ctx, 0); err != nil {
		return err
	}
	if _, err := c.Recv(ctx); !errors.Is(err, ipc.ErrClosed) {
		return err
	}
	return nil
})

// withIdler calls do with the id of a process that is parked in a receive, or is about to be.
func withIdler(ctx context.Context, do func(pid int) error) (err error) {
	ours, theirs, err := ipc.Pipe[int, int]()
	if err != nil {
		return err
	}
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1})
	p := idler.Go(g, theirs)
	// Closing our side is what lets it end.
	defer func() { err = errors.Join(err, ours.Close(), theirs.Close(), g.Wait()) }()
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(p.Wait(watched)) }()
	if _, err := ours.Recv(watched); err != nil {
		return err
	}
	return do(p.PID())
}

// idlerPSS measures the memory of a process that waits, with what it shares counted by parts.
func idlerPSS(*environment) *Probe {
	return &Probe{Measure: func(ctx context.Context) (size float64, err error) {
		err = withIdler(ctx, func(pid int) error {
			n, err := sys.PSS(pid)
			size = float64(n)
			return err
		})
		return size, err
	}}
}

// settled is how long a new process is given until nothing is left of its start.
const settled = time.Second

// idlerSwitches measures how often a second a process that waits gives up a processor, which it
// must have got before: wakes.
func idlerSwitches(h *environment, span time.Duration) func(ctx context.Context) (float64, error) {
	return func(ctx context.Context) (perSecond float64, err error) {
		err = withIdler(ctx, func(pid int) error {
			if err := sleep(ctx, min(settled, span)); err != nil {
				return err
			}
			before, err := sys.ContextSwitches(pid)
			if err != nil {
				return err
			}
			if err := sleep(ctx, span); err != nil {
				return err
			}
			after, err := sys.ContextSwitches(pid)
			perSecond = float64(after.Voluntary-before.Voluntary) / span.Seconds()
			return err
		})
		return perSecond, err
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
