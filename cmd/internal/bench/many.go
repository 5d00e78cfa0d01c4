package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

// roundsArgs is shared by many processes that do the same work in rounds. Puts or Turns selects the
// work; [roundsArgs.start] sets the other fields.
type roundsArgs struct {
	Barrier *ipc.Barrier    // of all processes and the measuring one; starts a round
	Queue   *ipc.Queue[int] // unused if Turns is set
	Puts    int             // numbers put by each process in a round, or 0
	Turns   int             // barrier turns in a round, or 0
}

// guest takes part in rounds until the barrier is aborted.
var guest = shoal.Register("bench guest", func(ctx context.Context, rank int, p roundsArgs) error {
	for {
		_, err := p.Barrier.Wait(ctx)
		for i := 0; i < p.Puts && err == nil; i++ {
			err = p.Queue.Put(ctx, i)
		}
		for i := 0; i < p.Turns && err == nil; i++ {
			_, err = p.Barrier.Wait(ctx)
		}
		if err != nil {
			if errors.Is(err, ipc.ErrBroken) {
				return nil
			}
			return err
		}
	}
})

// start creates the shared objects and starts n processes that take part in rounds. The fields
// Puts and Turns must be set before. The caller must call end, which stops the processes and
// closes the objects; it is nil if start fails.
func (p *roundsArgs) start(ctx context.Context, n int) (end func() error, err error) {
	if p.Barrier, err = ipc.NewBarrier(n + 1); err != nil {
		return nil, err
	}
	if p.Queue, err = ipc.NewQueue[int](ringSlots); err != nil {
		return nil, errors.Join(err, p.Barrier.Close())
	}
	g, err := guest.Start(ctx, n, *p, shoal.Options{Threads: 1})
	if err != nil {
		return nil, errors.Join(err, p.Queue.Close(), p.Barrier.Close())
	}
	return func() error {
		p.Barrier.Abort()
		return errors.Join(g.Wait(), p.Queue.Close(), p.Barrier.Close())
	}, nil
}

// measureRound starts a round and returns the nanoseconds of its p.Turns barrier turns.
// [roundsArgs.start] must have started the other processes.
func (p *roundsArgs) measureRound(ctx context.Context) (float64, error) {
	if _, err := p.Barrier.Wait(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	for range p.Turns {
		if _, err := p.Barrier.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(begin)), nil
}

// barrierRow returns a constructor of the row of a barrier turn of n processes, this one
// included. The row's value is the time divided by n.
func barrierRow(n int) func(context.Context, *environment) (group, error) {
	return func(ctx context.Context, h *environment) (group, error) {
		p := &roundsArgs{Turns: h.scaleRounds(1000)}
		end, err := p.start(ctx, n-1)
		c := Case{
			Name: fmt.Sprintf("barrier_%d", n), Unit: Nanoseconds,
			Ours:   divideProbe(float64(p.Turns*n), &Probe{Measure: p.measureRound}),
			Target: atMost(15_000, "15 µs"),
		}
		if n <= 8 { // each process of the peer needs hundreds of MB
			c.Peer = &peerWork{op: "barrier_many", Size: n, Rounds: h.scaleRounds(300)}
		}
		return group{rounds: 7, close: end, cases: []Case{c}}, err
	}
}

// producersRow returns a constructor of the row of the numbers per second that this process
// receives from n others.
func producersRow(n int, target Target) func(context.Context, *environment) (group, error) {
	return func(ctx context.Context, h *environment) (group, error) {
		p := &roundsArgs{Puts: h.scaleRounds(400_000) / n}
		end, err := p.start(ctx, n)
		return group{rounds: 7, close: end, cases: []Case{{
			Name: fmt.Sprintf("producers_%d", n), Unit: PerSecond,
			Ours:   &Probe{Measure: p.measureRate(n)},
			Target: target,
			Peer:   &peerWork{op: "producers", Size: n, Rounds: h.scaleRounds(20_000)},
		}}}, err
	}
}

// measureRate returns a function that starts a round and measures the numbers per second that this
// process receives from the n others. [roundsArgs.start] must have started these n processes
// before.
func (p *roundsArgs) measureRate(n int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		if _, err := p.Barrier.Wait(ctx); err != nil {
			return 0, err
		}
		begin, all := time.Now(), n*p.Puts
		for range all {
			if _, err := p.Queue.Get(ctx); err != nil {
				return 0, err
			}
		}
		return float64(all) / time.Since(begin).Seconds(), nil
	}
}
