package bench

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// A hoard tells a process how many blocks to hold, and where to say that it does.
type hoard struct {
	Blocks int
	Done   *ipc.Sender[int]
}

// hoarder holds blocks until it is killed.
var hoarder = shoal.Register("bench hoarder", func(ctx context.Context, _ int, in hoard) error {
	defer in.Done.Close()
	d, err := shm.Default()
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

// A reaping kills a process that holds blocks, and measures when the kernel says so and when the domain has taken the blocks back.
type reaping struct {
	h       *hall
	blocks  int
	noticed float64 // ns, of the last kill
}

// notice returns how long the kernel took in the kill that measure did last.
func (r *reaping) notice(context.Context) (float64, error) { return r.noticed, nil }

func (r *reaping) measure(ctx context.Context) (ns float64, err error) {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1})
	// That it was killed is what it was for.
	defer func() {
		if e := g.Close(); err == nil && !errors.Is(e, shoal.ErrExited) {
			err = e
		}
	}()
	p := hoarder.Go(g, hoard{r.blocks, q.Sender()})
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(p.Wait(watched)) }()
	if _, err := q.Get(watched); err != nil {
		return 0, err
	}
	return r.kill(ctx, p)
}

// lookAgain is how long passes between two looks whether all is taken back; a look goes over the whole domain.
const lookAgain = 500 * time.Microsecond

func (r *reaping) kill(ctx context.Context, p *shoal.Process) (float64, error) {
	fd, err := sys.OpenPidfd(p.PID())
	if err != nil {
		return 0, err
	}
	defer fd.Close()
	before := r.h.domain.Stats()
	type notice struct {
		at  time.Duration
		err error
	}
	told := make(chan notice)
	go func() {
		err := fd.Wait(ctx)
		told <- notice{sys.Monotonic(), err}
	}()
	begin := sys.Monotonic()
	err = p.Signal(syscall.SIGKILL)
	for err == nil && r.h.domain.Stats().Blocks > before.Blocks-r.blocks {
		err = sleep(ctx, lookAgain)
	}
	taken := sys.Monotonic()
	if err != nil {
		return 0, err
	}
	n := <-told
	r.noticed = float64(n.at - begin)
	return float64(taken - begin), n.err
}
