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

// A hoard tells a process how many blocks to hold, and where to say that it does.
type hoard struct {
	Blocks int
	Done   *ipc.Sender[int]
}

// hoarder holds blocks until it is killed.
var hoarder = shoal.Register("bench hoarder", func(ctx context.Context, _ int, in hoard) error {
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

// A reaping kills a process that holds blocks, and measures when the kernel says so and when the
// domain has taken the blocks back.
type reaping struct {
	h      *environment
	blocks int
	killing
}

func (r *reaping) measure(ctx context.Context) (ns float64, err error) {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	start := func(g *shoal.Group) *shoal.Process { return hoarder.Go(g, hoard{r.blocks, q.Sender()}) }
	err = doomed(ctx, start, func(alive context.Context, p *shoal.Process) error {
		if _, err := q.Get(alive); err != nil {
			return err
		}
		left := r.h.domain.Stats().Blocks - r.blocks
		ns, err = r.kill(ctx, p, func() (time.Duration, error) {
			for r.h.domain.Stats().Blocks > left {
				if err := sleep(ctx, lookAgain); err != nil {
					return 0, err
				}
			}
			return sys.Monotonic(), nil
		})
		return err
	})
	return ns, err
}

// lookAgain is how long passes between two looks whether all is taken back; a look goes over the
// whole domain.
const lookAgain = 500 * time.Microsecond

// doomed starts a process that is to be killed and calls f, whose context ends with the process:
// nobody waits for what it cannot say any more.
func doomed(ctx context.Context, start func(*shoal.Group) *shoal.Process,
	f func(alive context.Context, p *shoal.Process) error) (err error) {
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1, Threads: 1})
	// That it was killed is what it was for.
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

// A killing knows when the kernel said that whom it killed last has ended.
type killing struct{ noticed float64 } // ns after the kill

// notice is the floor of what waits for a death.
func (k *killing) notice(context.Context) (float64, error) { return k.noticed, nil }

// kill kills p and returns how many nanoseconds after that it was what taken returns, which waits
// for something.
func (k *killing) kill(ctx context.Context, p *shoal.Process, taken func() (time.Duration, error)) (float64, error) {
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
