package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// burner is a process that computes on one processor until it is canceled.
var burner = shoal.Register("bench burner", func(ctx context.Context, _, cpu int) error {
	if err := sys.SetAffinity(cpu); err != nil {
		return err
	}
	for ctx.Err() == nil {
		for range 1 << 16 { // no system call and no other goroutine
		}
	}
	return nil
})

// burnerRows returns rows of round trips while another process, which it starts, computes on
// each of the pair's processors. The floor is an eventfd, which is as fast as a pipe. p99.9 is
// the time that one of a thousand round trips exceeds.
func burnerRows(ctx context.Context, h *environment) (group, error) {
	burners := shoal.NewGroup(ctx, shoal.Options{Workers: len(h.cpus)})
	for _, cpu := range h.cpus {
		burner.Go(burners, cpu)
	}
	stop := func() error {
		if err := burners.Close(); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	g, err := pairedGroup(ctx, h, 5, func(p *pair) []Case {
		row := func(name, ours, floor string, rounds int) Case {
			o := order{Work: ours, Rounds: h.spinRounds(rounds), Size: small}
			f := order{Work: floor, Rounds: o.Rounds}
			return Case{Name: name, Unit: Nanoseconds, Ours: p.probe(o), Floor: p.probe(f), Target: overFloor(2)}
		}
		mean := row("tensor_rtt_burners", "tensor_rtt", "eventfd_rtt", 500)
		mean.Peer = &peerWork{op: "tensor_rtt", Size: small, Rounds: h.scaleRounds(200)}
		return []Case{mean, row("tensor_rtt_burners_p999", "tensor_tail", "eventfd_tail", 1000)}
	})
	if err != nil {
		return group{}, errors.Join(err, stop())
	}
	end := g.close
	g.close = func() error { return errors.Join(end(), stop()) }
	return g, nil
}

// tailOf calls round n times and returns n times the 99.9th percentile of the calls' durations,
// because the result of a work is divided by the number of rounds. n must be positive.
func tailOf(n int, round func() error) (time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		begin := time.Now()
		if err := round(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	return times[min(n-1, n*999/1000)] * time.Duration(n), nil
}

// exchangeTensor sends *t to the other side, which takes its reference, and sets *t to the
// tensor that comes back. The caller must close it.
func (s *side) exchangeTensor(t **tensor.Tensor) error {
	if err := s.sendTensor(*t); err != nil {
		return err
	}
	back, err := s.recv.Get(s.ctx)
	if err == nil {
		*t = back
	}
	return err
}

// eventfdWork returns a work that passes a signal back and forth through eventfds. On the
// leading side, rounds performs the round trips and returns the result: timeRounds or tailOf.
func eventfdWork(rounds func(n int, round func() error) (time.Duration, error)) work {
	lead := func(s *side, o order) (time.Duration, error) {
		if err := s.syncSides(); err != nil {
			return 0, err
		}
		return rounds(o.Rounds, func() error { return errors.Join(s.signalEventfd(), s.listen()) })
	}
	follow := func(s *side, o order) (time.Duration, error) {
		if err := s.syncSides(); err != nil {
			return 0, err
		}
		return repeatRounds(o.Rounds, func() error { return errors.Join(s.listen(), s.signalEventfd()) })
	}
	return work{lead, follow}
}
