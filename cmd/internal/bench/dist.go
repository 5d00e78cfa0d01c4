package bench

import (
	"context"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

var distSuite = Suite{
	Name:   "dist",
	Doc:    "reduce, gather and broadcast between processes",
	peer:   "torch_dist.py",
	groups: []func(context.Context, *environment) (group, error){distRows, reduceRows(2), reduceRows(4), reduceRows(8)},
}

func distRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 9, func(p *pair) []Case {
		copied := map[int]*Probe{}
		for _, size := range []int{mib, 64 * mib} {
			copied[size] = p.probe(order{Work: "memcpy", Rounds: h.scaleRounds(512 * mib / size), Size: size})
		}
		row := func(name, work string, size, rounds int) Case {
			return Case{
				Name: name, Unit: Nanoseconds, Floor: copied[size],
				Ours: p.probe(order{Work: work, Rounds: h.scaleRounds(rounds), Size: size}),
				Peer: &peerWork{op: work, Size: size, Rounds: h.scaleRounds(rounds)},
			}
		}
		return []Case{
			row("all_reduce_4B", "all_reduce", 4, 2000),
			row("all_reduce_1MiB", "all_reduce", mib, 100),
			row("all_reduce_64MiB", "all_reduce", 64*mib, 3),
			row("broadcast_64MiB", "broadcast", 64*mib, 3),
			row("all_gather_64MiB", "all_gather", 64*mib, 3),
		}
	})
}

// collectiveWork returns a work: both sides call a collective operation at the same time on
// float32 tensors in private memory.
func collectiveWork(call func(s *side, t *tensor.Tensor) error) work {
	each := func(s *side, o order) (time.Duration, error) {
		if s.vector == nil || s.vector.Nbytes() != o.Size {
			s.vector = tensor.Full(tensor.Float32, 1, o.Size/4)
		}
		if err := s.group.Barrier(s.ctx); err != nil { // start both sides at the same time
			return 0, err
		}
		return timeRounds(o.Rounds, func() error { return call(s, s.vector) })
	}
	follow := func(s *side, o order) (time.Duration, error) {
		_, err := each(s, o)
		return 0, err
	}
	return work{each, follow}
}

func allReduce(s *side, t *tensor.Tensor) error { return s.group.AllReduce(s.ctx, dist.Mean, t) }
func broadcast(s *side, t *tensor.Tensor) error { return s.group.Broadcast(s.ctx, 0, t) }

// allGather gathers t from its two halves, one from each side. The size in the row's name is the
// size of t, the result.
func allGather(s *side, t *tensor.Tensor) error {
	half := t.Numel() / 2
	part := t.Narrow(0, s.rank*half, half)
	defer part.Close()
	return s.group.AllGather(s.ctx, t, part)
}
