package bench

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// A hoarderArgs is the argument of hoarder: the number of blocks to hold, and a queue for the
// notification that it holds them.
type hoarderArgs struct {
	Blocks int
	Done   *ipc.Sender[int]
}

// hoarder holds blocks until it is killed.
var hoarder = shoal.Register("bench hoarder", func(ctx context.Context, _ int, in hoarderArgs) error {
	defer in.Done.Close()
	d, err := arena.Default()
	if err != nil {
		return err
	}
	for range in.Blocks {
		if _, err := d.Alloc(small); err != nil {
			return err
		}
	}
	if err := in.Done.Put(ctx, in.Blocks); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
})

// A reclaimProbe kills a process that holds blocks. It measures the times at which the kernel
// reports the death and the domain has reclaimed the blocks.
type reclaimProbe struct {
	h      *environment
	blocks int
	deathNotice
}

func (r *reclaimProbe) measure(ctx context.Context) (ns float64, err error) {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	start := func(g *shoal.Group) *shoal.Process { return hoarder.Go(g, hoarderArgs{r.blocks, q.Sender()}) }
	err = runDoomed(ctx, start, func(alive context.Context, p *shoal.Process) error {
		if _, err := q.Get(alive); err != nil {
			return err
		}
		left := r.h.domain.Stats().Blocks - r.blocks
		ns, err = r.killAndMeasure(ctx, p, func() (time.Duration, error) {
			for r.h.domain.Stats().Blocks > left {
				if err := sleepFor(ctx, lookAgain); err != nil {
					return 0, err
				}
			}
			return sys.Monotonic(), nil
		})
		return err
	})
	return ns, err
}

// lookAgain is the interval between checks whether all blocks are reclaimed. A check scans the
// whole domain.
const lookAgain = 500 * time.Microsecond

// runDoomed starts a process with start, calls f, and cancels the process if it is still alive
// then. The context of f is done when the process exits, so that f does not wait for messages
// that never come. That the process was killed is not an error.
func runDoomed(ctx context.Context, start func(*shoal.Group) *shoal.Process,
	f func(alive context.Context, p *shoal.Process) error) (err error) {
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1, Threads: 1})
	// The error of a killed process is expected.
	defer func() {
		if e := g.Close(); err == nil && !errors.Is(e, shoal.ErrExited) {
			err = e
		}
	}()
	p := start(g)
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(p.Wait(alive)) }()
	return f(alive, p)
}

// A deathNotice records when the kernel reported the last death.
type deathNotice struct{ noticed float64 } // ns after the kill

// noticeTime returns the nanoseconds until the kernel reported the last death. It is the floor for
// reactions to a death.
func (k *deathNotice) noticeTime(context.Context) (float64, error) { return k.noticed, nil }

// killAndMeasure kills p and calls taken, which must wait for an effect and return its time on
// the clock [sys.Monotonic]. It returns the time from the kill to the effect in nanoseconds, and
// keeps the time of the kernel's notification for [deathNotice.noticeTime].
func (k *deathNotice) killAndMeasure(ctx context.Context, p *shoal.Process,
	taken func() (time.Duration, error)) (float64, error) {
	fd, err := sys.OpenPidfd(p.PID())
	if err != nil {
		return 0, err
	}
	defer fd.Close()
	type notice struct {
		at  time.Duration
		err error
	}
	told := make(chan notice, 1)
	go func() {
		err := fd.Wait(ctx)
		told <- notice{sys.Monotonic(), err}
	}()
	begin := sys.Monotonic()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return 0, err
	}
	at, err := taken()
	if err != nil {
		return 0, err
	}
	n := <-told
	k.noticed = float64(n.at - begin)
	return float64(at - begin), n.err
}
