package bench

import (
	"context"
	"time"
)

var core = Suite{
	Name: "core",
	Doc:  "basic costs: transfers, wakeups, allocation, process start and death",
	peer: "torch_core.py",
	groups: []func(context.Context, *environment) (group, error){
		handleRows, wakeRows, tensorRows, freshRows, burnerRows, spawnRows, oversubscriptionRows, memoryRows,
		reapRows, deathRows,
	},
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// pairedGroup starts a pair of processes and returns a group of the rows that cases makes of it,
// with rounds samples for each row. The group's close function stops the pair.
func pairedGroup(ctx context.Context, h *environment, rounds int, cases func(p *pair) []Case) (group, error) {
	p, err := newPair(ctx, h)
	if err != nil {
		return group{}, err
	}
	return group{rounds: rounds, cases: cases(p), close: p.close}, nil
}

// spinRounds returns n scaled by [environment.scaleRounds], for a benchmark that spins. On a
// single processor n is limited to 10 first, because each turn takes a whole time slice.
func (h *environment) spinRounds(n int) int {
	if h.isSingleCPU() {
		n = min(n, 10)
	}
	return h.scaleRounds(n)
}

func handleRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 21, func(p *pair) []Case {
		line := p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)})
		bare := p.measureRate(order{Work: "bare_ring", Rounds: h.spinRounds(500_000)})
		return []Case{
			{
				Name: "handle_rtt_spin", Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "handle_rtt", Rounds: h.spinRounds(50_000)}),
				Floor:  line,
				Target: byDistance(overFloor(3.5), overFloor(2)),
				// no peer: a handle is no tensor
			},
			{
				Name: "handle_msgs_per_s", Unit: PerSecond,
				Ours:   p.measureRate(order{Work: "handles", Rounds: h.spinRounds(200_000)}),
				Floor:  bare,
				Target: rateTarget,
			},
			{
				Name: "queue_msgs_per_s", Unit: PerSecond,
				Ours:   p.measureRate(order{Work: "queue", Rounds: h.spinRounds(200_000)}),
				Floor:  bare,
				Target: rateTarget,
				Peer:   &peerWork{op: "numbers_per_s", Rounds: h.scaleRounds(20_000)},
			},
			{
				Name: "queue_batch", Unit: PerSecond,
				Ours:   divideProbe(1./queueBatch, p.measureRate(order{Work: "queue_batch", Rounds: h.spinRounds(10_000)})),
				Floor:  bare,
				Target: atLeast(12e6, "12 M/s"),
				Peer:   &peerWork{op: "numbers_in_lists_per_s", Size: queueBatch, Rounds: h.scaleRounds(5_000)},
			},
			{
				Name: "alloc_put_get_release", Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "alloc_put_get_release", Rounds: h.scaleRounds(100_000)}),
				Floor:  p.probe(order{Work: "cas", Rounds: h.scaleRounds(1_000_000)}),
				Target: overFloor(30),
			},
		}
	})
}

// rateTarget is the [Target] of message rates: 5 million per second, or 2 million if the floor
// of the earlier row handle_rtt_spin exceeds [farLine], so the processors are far apart.
func rateTarget(r Result, before []Result) (string, bool) {
	for _, b := range before {
		if b.Name == "handle_rtt_spin" && b.Floor > farLine {
			return atLeast(2e6, "2 M/s")(r, before)
		}
	}
	return atLeast(5e6, "5 M/s")(r, before)
}

func wakeRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 15, func(p *pair) []Case {
		return []Case{{
			Name: "handle_rtt_parked", Unit: Nanoseconds,
			Ours:   p.probe(order{Work: "handle_parked", Rounds: h.scaleRounds(300)}),
			Floor:  p.probe(order{Work: "eventfd_parked", Rounds: h.scaleRounds(300)}),
			Target: overFloor(1.3),
		}}
	})
}

func tensorRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 15, func(p *pair) []Case {
		line := p.probe(order{Work: "line_rtt", Rounds: h.spinRounds(100_000)})
		row := func(name string, size int, t Target) Case {
			return Case{
				Name: "tensor_rtt_" + name, Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "tensor_rtt", Rounds: h.spinRounds(20_000), Size: size}),
				Floor:  line,
				Target: t,
				Peer:   &peerWork{op: "tensor_rtt", Size: size, Rounds: h.scaleRounds(200)},
			}
		}
		return []Case{
			{
				Name: "tensor_rtt_64B", Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "tensor_rtt", Rounds: h.spinRounds(20_000), Size: small}),
				Floor:  p.probe(order{Work: "handle_rtt", Rounds: h.spinRounds(20_000)}),
				Target: bothTargets(overFloor(1.5), atMost(2000, "2 µs")),
				Peer:   &peerWork{op: "tensor_rtt", Size: small, Rounds: h.scaleRounds(200)},
			},
			{
				Name: "tensors_per_s", Unit: PerSecond,
				Ours:   p.measureRate(order{Work: "tensors", Rounds: h.spinRounds(100_000), Size: small}),
				Floor:  p.measureRate(order{Work: "handles", Rounds: h.spinRounds(200_000)}),
				Target: atLeast(1.5e6, "1.5 M/s"),
				Peer:   &peerWork{op: "tensors_per_s", Size: small, Rounds: h.scaleRounds(500)},
			},
			{
				Name: "tensor_life", Unit: Nanoseconds,
				Ours:   p.probe(order{Work: "tensor_life", Rounds: h.scaleRounds(100_000), Size: small}),
				Floor:  p.probe(order{Work: "alloc_put_get_release", Rounds: h.scaleRounds(100_000)}),
				Target: atMost(1000, "1 µs"),
				Peer:   &peerWork{op: "alloc_put_get_release", Size: small, Rounds: h.scaleRounds(200)},
			},
			row("4KiB", 4*kib, nil),
			row("1MiB", mib, atMostTimes("tensor_rtt_4KiB", 1.2)),
			row("64MiB", 64*mib, atMostTimes("tensor_rtt_4KiB", 1.2)),
			{
				Name: "tensor_rtt_touch_64MiB", Unit: Nanoseconds,
				Ours:  p.probe(order{Work: "tensor_touch", Rounds: h.scaleRounds(5), Size: 64 * mib}),
				Floor: p.probe(order{Work: "sum", Rounds: h.scaleRounds(5), Size: 64 * mib}),
				Peer:  &peerWork{op: "tensor_touch", Size: 64 * mib, Rounds: h.scaleRounds(5)},
			},
		}
	})
}

func freshRows(ctx context.Context, h *environment) (group, error) {
	return pairedGroup(ctx, h, 11, func(p *pair) []Case {
		return []Case{{
			Name: "fresh_tensor_64MiB", Unit: Nanoseconds,
			Ours:   p.probe(order{Work: "fresh_tensor", Rounds: h.scaleRounds(5), Size: 64 * mib}),
			Floor:  p.probe(order{Work: "memcpy", Rounds: h.scaleRounds(5), Size: 64 * mib}),
			Target: overFloor(1.2),
			Peer:   &peerWork{op: "fresh_tensor", Size: 64 * mib, Rounds: h.scaleRounds(2)},
		}}
	})
}

func spawnRows(ctx context.Context, h *environment) (group, error) {
	return group{rounds: 25, cases: []Case{{
		Name: "spawn_first_statement", Unit: Nanoseconds,
		Ours:   firstStatement(h, 1),
		Target: atMost(float64(2*time.Millisecond), "2 ms"),
		Peer:   &peerWork{op: "spawn", Rounds: 1, once: true},
	}}}, nil
}

func oversubscriptionRows(ctx context.Context, h *environment) (group, error) {
	return group{rounds: 5, cases: []Case{{
		Name: "spawn_64_workers", Unit: Nanoseconds,
		Ours:   firstStatement(h, 64),
		Target: atMost(float64(200*time.Millisecond), "200 ms"),
		// no peer: it would need 7 GiB and two minutes
	}}}, nil
}

func memoryRows(ctx context.Context, h *environment) (group, error) {
	return group{rounds: 3, cases: []Case{{
		Name: "worker_pss", Unit: Bytes,
		Ours:   idlerPSS(h),
		Target: atMost(15*mib, "15 MiB"),
		Peer:   &peerWork{op: "pss", once: true},
	}}}, nil
}

func reapRows(ctx context.Context, h *environment) (group, error) {
	r := &reclaimProbe{h: h, blocks: h.scaleRounds(64 * kib)}
	return group{rounds: 5, cases: []Case{{
		Name: "reap_64k_blocks", Unit: Nanoseconds,
		Ours:   &Probe{Measure: r.measure},
		Floor:  &Probe{Measure: r.noticeTime},
		Target: aboveFloor(float64(10*time.Millisecond), "10 ms"),
	}}}, nil
}

func deathRows(context.Context, *environment) (group, error) {
	row := func(name string, d *deathProbe) Case {
		return Case{
			Name: name, Unit: Nanoseconds,
			Ours:   &Probe{Measure: d.measure},
			Floor:  &Probe{Measure: d.noticeTime},
			Target: atMost(float64(100*time.Millisecond), "100 ms"),
			// no peer: its survivor waits forever
		}
	}
	return group{rounds: 21, cases: []Case{
		row("death_to_survivor", new(deathProbe)),
		row("death_to_receiver", &deathProbe{queue: true}),
	}}, nil
}
