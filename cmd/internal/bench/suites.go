package bench

import (
	"context"
	"time"
)

var sizes = Suite{
	Name:   "sizes",
	Doc:    "round trips of 4 B to 64 MiB",
	peer:   "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){sizeRows},
}

var floors = Suite{
	Name:   "floors",
	Doc:    "limits of the machine without Shoal",
	peer:   "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){floorRows},
}

var idle = Suite{
	Name:   "idle",
	Doc:    "wakeups of a process that waits for a message, over a minute",
	peer:   "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){idleRows},
}

func sizeRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 9, func(p *pair) (cases []Case) {
		line := p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)})
		for _, s := range []struct {
			name, work string
			size       int
		}{
			{"4B", "body_rtt", 4},
			{"64B", "body_rtt", 64},
			{"200B", "body_rtt", 200},
			{"1KiB", "tensor_rtt", kib},
			{"16KiB", "tensor_rtt", 16 * kib},
			{"256KiB", "tensor_rtt", 256 * kib},
			{"4MiB", "tensor_rtt", 4 * mib},
			{"64MiB", "tensor_rtt", 64 * mib},
		} {
			cases = append(cases, Case{
				Name: "rtt_" + s.name, Unit: Nanoseconds,
				Ours:  p.probe(order{Work: s.work, Rounds: h.spinRounds(20_000), Size: s.size}),
				Floor: line,
				Peer:  &peerWork{op: "tensor_rtt", Size: s.size, Rounds: h.scaleRounds(200)},
			})
		}
		return cases
	})
}

func floorRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 15, func(p *pair) []Case {
		return []Case{
			{Name: "line_rtt", Unit: Nanoseconds,
				Ours: p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)})},
			{Name: "bare_ring_per_s", Unit: PerSecond,
				Ours: p.measureRate(order{Work: "bare_ring", Rounds: h.spinRounds(500_000)})},
			{Name: "futex_rtt", Unit: Nanoseconds,
				Ours: p.probe(order{Work: "futex_rtt", Rounds: h.scaleRounds(1000)})},
			{Name: "eventfd_rtt", Unit: Nanoseconds,
				Ours: p.probe(order{Work: "eventfd_parked", Rounds: h.scaleRounds(300)})},
			{Name: "cas", Unit: Nanoseconds, Ours: p.probe(order{Work: "cas", Rounds: h.scaleRounds(1_000_000)})},
			{Name: "memcpy_64MiB", Unit: Nanoseconds,
				Ours: p.probe(order{Work: "memcpy", Rounds: h.scaleRounds(5), Size: 64 * mib})},
			{Name: "sum_64MiB", Unit: Nanoseconds,
				Ours: p.probe(order{Work: "sum", Rounds: h.scaleRounds(5), Size: 64 * mib})},
		}
	})
}

func idleRows(ctx context.Context, h *environment) (group, error) {
	span := time.Minute
	if h.quick {
		span = 50 * time.Millisecond
	}
	return group{rounds: 1, cases: []Case{{
		Name: "idle_switches_per_s", Unit: PerSecond,
		Ours:   &Probe{Measure: idlerSwitches(h, span), Once: true},
		Target: atMost(0.1, "0.1 /s"),
	}}}, nil
}
