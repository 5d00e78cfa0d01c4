package bench

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// idler signals that it is ready and waits for a message that never comes.
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

// runWithIdler starts a process, calls do with its ID when it is parked in a receive or about to
// be, and stops the process after do has returned.
func runWithIdler(ctx context.Context, do func(pid int) error) (err error) {
	ours, theirs, err := ipc.Pipe[int, int]()
	if err != nil {
		return err
	}
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1})
	p := idler.Go(g, theirs)
	// The idler exits when our end is closed.
	defer func() { err = errors.Join(err, ours.Close(), theirs.Close(), g.Wait()) }()
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(p.Wait(watched)) }()
	if _, err := ours.Recv(watched); err != nil {
		return err
	}
	return do(p.PID())
}

// idlerPSS returns a probe of the proportional set size in bytes of a new idle process.
func idlerPSS(*environment) *Probe {
	return &Probe{Measure: func(ctx context.Context) (size float64, err error) {
		err = runWithIdler(ctx, func(pid int) error {
			n, err := sys.PSS(pid)
			size = float64(n)
			return err
		})
		return size, err
	}}
}

// settled is the time after which the startup work of a new process has ended.
const settled = time.Second

// idlerSwitches returns a function that measures the voluntary context switches per second of a
// new idle process for the duration span. They correspond to its wake-ups. The process is idle
// for a second before, or for span if it is shorter.
func idlerSwitches(h *environment, span time.Duration) func(ctx context.Context) (float64, error) {
	return func(ctx context.Context) (perSecond float64, err error) {
		err = runWithIdler(ctx, func(pid int) error {
			if err := sleepFor(ctx, min(settled, span)); err != nil {
				return err
			}
			before, err := sys.ContextSwitches(pid)
			if err != nil {
				return err
			}
			if err := sleepFor(ctx, span); err != nil {
				return err
			}
			after, err := sys.ContextSwitches(pid)
			perSecond = float64(after.Voluntary-before.Voluntary) / span.Seconds()
			return err
		})
		return perSecond, err
	}
}

func sleepFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
