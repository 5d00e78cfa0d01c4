package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// A victimArgs is passed to the process that will be killed: a lock, and the only sending end of a
// queue.
type victimArgs struct {
	Mutex *ipc.Mutex
	Out   *ipc.Sender[int]
	Ready *ipc.Sender[int]
}

// testator holds the lock and the sending end until it is killed.
var testator = shoal.Register("bench testator", func(ctx context.Context, _ int, in victimArgs) error {
	defer in.Out.Close()
	if err := errors.Join(in.Mutex.Lock(ctx), in.Ready.Put(ctx, 0)); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
})

// survivorArgs is passed to the surviving process. It waits for a message if it has a receiving end
// and for the lock otherwise.
type survivorArgs struct {
	Mutex *ipc.Mutex
	In    *ipc.Receiver[int]
	Said  *ipc.Sender[deathReport] // gets an empty value before the wait and the result after it
}

// deathReport is the death notification that a survivor received.
type deathReport struct {
	PID int
	At  time.Duration // monotonic clock
}

var survivor = shoal.Register("bench survivor", func(ctx context.Context, _ int, in survivorArgs) (err error) {
	defer in.Said.Close()
	if err := in.Said.Put(ctx, deathReport{}); err != nil {
		return err
	}
	if in.In != nil {
		_, err = in.In.Get(ctx)
	} else if err = in.Mutex.Lock(ctx); errors.Is(err, ipc.ErrOwnerDied) {
		defer in.Mutex.Unlock()
	}
	at := sys.Monotonic()
	peer, ok := errors.AsType[*arena.PeerError](err)
	if !ok {
		return fmt.Errorf("survivor received no death notification: %w", err)
	}
	return in.Said.Put(ctx, deathReport{peer.PID, at})
})

// A deathProbe measures how long after a process's death the kernel and a surviving process are
// notified of it. Each measurement starts both processes and kills the one while the other waits
// for it. The measuring process is older than both, so it must observe the death, reap the
// process and wake the survivor: the longest notification path.
type deathProbe struct {
	queue bool // wait for a message, not for the lock
	deathNotice
}

func (d *deathProbe) measure(ctx context.Context) (ns float64, err error) {
	mutex, err := ipc.NewMutex()
	if err != nil {
		return 0, err
	}
	defer mutex.Close()
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		return 0, err
	}
	defer q.Close()
	ready, err := ipc.NewQueue[int](1)
	if err != nil {
		return 0, err
	}
	defer ready.Close()
	start := func(g *shoal.Group) *shoal.Process {
		return testator.Go(g, victimArgs{mutex, q.Sender(), ready.Sender()})
	}
	err = runDoomed(ctx, start, func(alive context.Context, p *shoal.Process) error {
		if _, err := ready.Get(alive); err != nil {
			return err
		}
		if err := q.Sender().Close(); err != nil {
			return err
		}
		h := survivorArgs{Mutex: mutex}
		if d.queue {
			h.In = q.Receiver()
		}
		ns, err = d.killAndWait(ctx, p, h)
		return err
	})
	return ns, err
}

// killAndWait starts the survivor with the argument h, waits until it is parked, and kills p. It
// returns the nanoseconds from the kill until the survivor has received the death notification.
func (d *deathProbe) killAndWait(ctx context.Context, p *shoal.Process, h survivorArgs) (ns float64, err error) {
	said, err := ipc.NewQueue[deathReport](1)
	if err != nil {
		return 0, err
	}
	defer said.Close()
	h.Said = said.Sender()
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1, Threads: 1})
	defer func() { err = errors.Join(err, g.Close()) }()
	survivor.Go(g, h)
	if _, err := said.Get(ctx); err != nil {
		return 0, err
	}
	if err := errors.Join(h.Said.Close(), sleepFor(ctx, untilParked)); err != nil {
		return 0, err
	}
	return d.killAndMeasure(ctx, p, func() (time.Duration, error) {
		news, err := said.Get(ctx)
		if err == nil && news.PID != p.PID() {
			err = fmt.Errorf("survivor received the death of process %d, want %d", news.PID, p.PID())
		}
		return news.At, err
	})
}
