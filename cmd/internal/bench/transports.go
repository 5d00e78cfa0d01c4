package bench

import "context"

var transports = Suite{
	Name:   "peers",
	Doc:    "tensors compared with samples of iceoryx2 and buffers of shmipc-go; floors in C",
	groups: []func(context.Context, *environment) (group, error){transportRows},
}

// transportRows returns rows that compare our transports with two other libraries. It builds
// their programs. Programs that cannot be built are omitted with a note.
func transportRows(ctx context.Context, h *environment) (group, error) {
	built := func(n native) *program {
		p, err := n.build(ctx, h)
		if err != nil {
			h.note("without %s: %v", n.name, err)
		}
		return p
	}
	c, ice, shm := built(cFloor), built(iceoryx2), built(shmipc)
	return pairedGroup(ctx, h, 11, func(p *pair) (cases []Case) {
		row := func(name string, unit Unit, ours, floor *Probe, rival *program, work string, size, rounds int) {
			one := Case{Name: name, Unit: unit, Ours: ours, Floor: floor}
			if theirs := rival.probe(h, unit, work, size, rounds); theirs != nil {
				one.Rival = &Rival{rival.name, theirs}
			}
			cases = append(cases, one)
		}
		line := c.probe(h, Nanoseconds, "rtt", 0, h.spinRounds(100_000))
		for _, s := range []struct {
			name string
			size int
		}{{"64B", small}, {"1MiB", mib}, {"64MiB", 64 * mib}} {
			ours := p.probe(order{Work: "tensor_rtt", Rounds: h.spinRounds(20_000), Size: s.size})
			row("rtt_"+s.name+"_iceoryx2", Nanoseconds, ours, line, ice, "rtt", s.size, h.spinRounds(20_000))
			row("rtt_"+s.name+"_shmipc", Nanoseconds, ours, line, shm, "rtt", s.size, h.spinRounds(2000))
		}
		ours, ring := p.measureRate(order{Work: "tensors", Rounds: h.spinRounds(100_000), Size: small}),
			c.probe(h, PerSecond, "msgs", 0, h.spinRounds(500_000))
		row("msgs_per_s_iceoryx2", PerSecond, ours, ring, ice, "msgs", small, h.spinRounds(100_000))
		row("msgs_per_s_shmipc", PerSecond, ours, ring, shm, "msgs", small, h.spinRounds(20_000))
		row("wake_rtt_iceoryx2", Nanoseconds, p.probe(order{Work: "event_parked", Rounds: h.scaleRounds(300)}),
			c.probe(h, Nanoseconds, "wake", 0, h.scaleRounds(300)), ice, "wake", 0, h.scaleRounds(300))
		return cases
	})
}
