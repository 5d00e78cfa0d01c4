package bench

import (
	"context"
	"fmt"
	"time"
)

// A session measures groups and emits their rows.
type session struct {
	peer   *peer // nil without one
	quick  bool
	step   func(name string)
	emit   func(Result) error
	lull   time.Duration // pause before a noisy group is repeated
	before []Result
}

// A group is measured up to attempts times until no row with a target is noisy. Between attempts,
// lull gives the machine time to become idle.
const (
	attempts = 3
	lull     = 5 * time.Second
)

// measure measures the group until it is not noisy, at most three times, and emits the rows of the
// least noisy attempt.
func (s *session) measure(ctx context.Context, suite string, g group) error {
	quietest, err := s.measureGroup(ctx, g)
	for n := 1; err == nil && n < attempts && !s.quick && quietest.largestSpread() > noisy; n++ {
		s.step("waiting for a quiet minute")
		var m *measurement
		if err = sleepFor(ctx, s.lull); err != nil {
			return err
		}
		if m, err = s.measureGroup(ctx, g); err == nil && m.largestSpread() < quietest.largestSpread() {
			quietest = m
		}
	}
	if err != nil {
		return err
	}
	for i, c := range g.cases {
		r := quietest.rowResult(i)
		r.Suite = suite
		if c.Target != nil {
			r.Target, r.Met = c.Target(r, s.before)
		}
		s.before = append(s.before, r)
		if err := s.emit(r); err != nil {
			return err
		}
	}
	return nil
}

// measureGroup warms up each measurement of the group once and then measures all of them
// alternately.
func (s *session) measureGroup(ctx context.Context, g group) (*measurement, error) {
	rounds := g.rounds
	if s.quick {
		rounds = 1
	}
	m := newMeasurement(g.cases, s.peer)
	for round := range rounds + 1 {
		for _, t := range m.takes {
			warmUp := round == 0
			if t.once && round != 1 || warmUp && s.quick {
				continue
			}
			s.step(t.name)
			v, err := t.probe(ctx)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", t.name, err)
			}
			if !warmUp {
				t.samples = append(t.samples, v)
			}
		}
	}
	return m, nil
}

// A take is a measurement with its samples.
type take struct {
	name    string
	probe   func(ctx context.Context) (float64, error)
	once    bool
	samples []float64
}

// A measurement maps rows to takes. A floor that several rows share is measured only once.
type measurement struct {
	cases  []Case
	takes  []*take
	probes map[*Probe]*take
	peers  map[string][]peerTake // by row
}

type peerTake struct {
	name string // of the variant
	*take
}

func newMeasurement(cases []Case, p *peer) *measurement {
	m := &measurement{cases: cases, probes: make(map[*Probe]*take), peers: make(map[string][]peerTake)}
	floors := make(map[*peerWork]*Probe)
	for i := range cases {
		if cases[i].Ours == nil && p != nil {
			cases[i].Ours = &Probe{Measure: p.probe(cases[i].Peer, ourVariant)}
		}
		if w := cases[i].floorWork; w != nil && p != nil {
			if floors[w] == nil {
				floors[w] = &Probe{Measure: p.probe(w, floorVariant)}
			}
			cases[i].Floor = floors[w]
		}
		c := cases[i]
		m.add(c.Name, c.Ours)
		m.add(c.Name+", floor", c.Floor)
		if c.Rival != nil {
			name := c.Rival.Name
			t := &take{name: c.Name + ", " + name, probe: c.Rival.Measure}
			m.takes = append(m.takes, t)
			m.peers[c.Name] = append(m.peers[c.Name], peerTake{name, t})
		}
		if p == nil || c.Peer == nil {
			continue
		}
		for _, v := range p.variants(c.Peer.op) {
			t := &take{name: c.Name + ", " + v, once: c.Peer.once, probe: p.probe(c.Peer, v)}
			m.takes = append(m.takes, t)
			m.peers[c.Name] = append(m.peers[c.Name], peerTake{p.name(v), t})
		}
	}
	return m
}

func (m *measurement) add(name string, p *Probe) {
	if p == nil || m.probes[p] != nil {
		return
	}
	t := &take{name: name, probe: p.Measure, once: p.Once}
	m.probes[p] = t
	m.takes = append(m.takes, t)
}

func (m *measurement) rowResult(i int) Result {
	c := m.cases[i]
	var floor []float64
	if c.Floor != nil {
		floor = m.probes[c.Floor].samples
	}
	r := newResult(c, m.probes[c.Ours].samples, floor)
	var variants []variant
	for _, t := range m.peers[c.Name] {
		variants = append(variants, variant{t.name, t.samples})
	}
	r.setPeer(variants)
	r.Noisy = r.largerSpread() > noisy
	return r
}

// largestSpread returns the largest spread among the rows with a target and their peers.
func (m *measurement) largestSpread() (most float64) {
	for i, c := range m.cases {
		if c.Target != nil {
			r := m.rowResult(i)
			most = max(most, r.largerSpread())
		}
	}
	return most
}
